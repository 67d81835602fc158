"""A folder a paper, in it a folder or a file a page: its experiment, tables and claims.

What pages share stands here. To run an experiment: `experiment` (its class), `experiments` (where
each is), `settings`, `parts`, `probe_rows`, `commands`, `command_checks`. To show what came out:
`questions` and `live_claims` (answers with their verdicts), `guards`, `answer_box`, `forest`,
`differences`, `printed` (the papers' numbers), `page_parameters`, and of all pages together
`front`, `board` and `overview`.
"""
