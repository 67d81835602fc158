"""What each colour means, for every figure of the book.

Hues of methods belong to methods alone. Protocols have no hue: a marker, how it is filled, and a
kind of line, in ink. Whatever else is told apart takes from the other hues; tables that meet on one
page share none. Every line stands out from a white page and from a dark one (3 to 1). Markers and
words say the same again, for those who see no hues. `tests/test_colours.py` holds all of this.
"""

from matplotlib.colors import LinearSegmentedColormap

# Of methods, after Okabe and Ito.
_BLUE, _VERMILION, _GREEN, _SKY = "#0072B2", "#D55E00", "#009E73", "#3A97D4"
_PINK, _BROWN, _AMBER = "#C56FA2", "#96683F", "#B98700"
# Of all else.
_PURPLE, _OLIVE, _TEAL, _SLATE, _MAROON = "#8B62CC", "#7E8500", "#128C93", "#64788A", "#B8475A"
_INDIGO, _GOLD, _LEAF, _BERRY = "#6A76D9", "#9A7B1C", "#4F8F3D", "#B9439A"

INK, REFERENCE, FAINT, PALE = "#222222", "#7F7F7F", "#BBBBBB", "#EFEFEF"  # from near to far

METHOD = {  # method -> (colour, marker); two names of one idea share a pair
    "fedavg": (_BLUE, "o"),
    "baseline": (_BLUE, "o"),
    "local_only": (_BROWN, "s"),
    "source_only": (_BROWN, "s"),
    "lg_fedavg": (_VERMILION, "D"),
    "lg_fedavg_v1": (_AMBER, "h"),
    "mtl": (_GREEN, "^"),
    "fedprox": (_SKY, "v"),
    "lg_fedavg_adv": (_PINK, "P"),
    "cgau_kept": (_VERMILION, "d"),
    "cgau_averaged": (_AMBER, "<"),
    "fade_dann": (_AMBER, "^"),
    "fade_cdan": (_VERMILION, "p"),
    "fedavg_shot": (_GREEN, "v"),
    "resnet": (_BROWN, "X"),
    "dann": (_AMBER, ">"),
    "cdan": (_VERMILION, "H"),
    "shot": (_GREEN, ">"),
    "dann+shot": (_SKY, "p"),
    "cdan+shot": (_PINK, "*"),
}
SPARE = ((_AMBER, "8"), (_PINK, "X"), (_SKY, "*"), (_GREEN, "d"), (_BROWN, "h"))  # other methods

PROTOCOL = {  # drawn in ink; the paper's own numbers are hollow circles
    "as_released": {"marker": "D", "fillstyle": "left", "linestyle": "--"},
    "as_described": {"marker": "o", "fillstyle": "full", "linestyle": "-"},
}

MEASURED, CORRECTED, PRINTED = INK, _PURPLE, _MAROON  # of a formula
LOSS = {  # loss of an adversary -> (colour, marker)
    "none": (REFERENCE, "s"),
    "vanilla": (_OLIVE, "o"),
    "between": (_SLATE, "^"),
    "squared": (_TEAL, "D"),
}
LAW = {"cube": (_OLIVE, "o"), "normal": (_TEAL, "^"), "sphere": (_SLATE, "D")}  # of inputs
SIDE = {"last": (_PURPLE, "D"), "first": (_OLIVE, "o")}  # whose layers are shared
PART = {  # of a published gap, as areas
    "method": _TEAL,
    "settings": "#8FCBCE",
    "selection": _MAROON,
    "rest": FAINT,
}
PRETEXT = {  # what a device learns beside its labels -> (colour, marker)
    "supervised": (_OLIVE, "^"),
    "autoencoder": (_TEAL, "s"),
    "jigsaw": (_PURPLE, "v"),
    "rotation": (_SLATE, "X"),
}
UNIT = {"shared": "#FBE3C0", "client": "#CFE8DC"}  # parameters of a unit, as areas
KIND = {  # of verdicts -> (colour, hatching), as areas
    "holds": ("#0B7A75", ""),
    "holds in part": ("#8CC9C4", ".."),
    "fails": (_MAROON, "xx"),
    "undecided": (FAINT, ""),
    "on other data": ("#DDDDDD", "//"),
    "not yet run": ("#FFFFFF", ""),
}
CASE = (_INDIGO, _GOLD, _LEAF, _BERRY)  # what one figure compares and no other does
GROUP = (*CASE, _PURPLE, _OLIVE, _TEAL, _SLATE, _MAROON, INK)  # clients, users, classes

LABEL = ("#543005", "#003C30")  # two classes over `SIGNED`, whose ends they are
SIGNED, AMOUNT = "BrBG", "Purples"  # matplotlib's maps: values about a middle, values from zero
SHADES = LinearSegmentedColormap.from_list("lgfed", [_INDIGO, _BERRY, _GOLD])  # of what is ordered
