"""`python -m jato bench`: a function timed eagerly, jitted and pmapped.

    programs.py   the built-in functions and their inputs
    target.py     FILE:FUNCTION, and where its inputs come from
    measure.py    times of a call: first, median, spread
    modes.py      the three modes of one function, and whether they agree
    peer.py       the same in a process with another package
    report.py     table, JSON       plot.py   picture
    command.py    all of it in order: start here
"""
