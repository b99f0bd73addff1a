# SPDX-License-Identifier: Apache-2.0
"""Test programs that print TAP: main(tests) runs all, or those whose names begin as an argument
does."""
import sys
import traceback


class Failed(Exception):
    pass


def need(true, *words):
    if not true:
        raise Failed(" ".join(w.decode("utf-8", "replace") if isinstance(w, bytes) else str(w)
                              for w in words))


def named(names):
    """Those of a script that are called test_*: names is its globals()."""
    return [(n[5:], f) for n, f in list(names.items()) if n.startswith("test_")]


def main(tests, reset=lambda: None):
    """tests: (name, function) pairs; reset() comes before each. Ends the program."""
    wanted = sys.argv[1:]
    if wanted:
        tests = [t for t in tests if any(t[0].startswith(w) for w in wanted)]
    failed = 0
    print("1..%d" % len(tests))
    for number, (name, function) in enumerate(tests, 1):
        try:
            reset()
            function()
            print("ok %d - %s" % (number, name), flush=True)
        except Exception as error:  # one broken test must not hide the others
            failed += 1
            print("not ok %d - %s" % (number, name))
            text = str(error) if isinstance(error, Failed) else traceback.format_exc()
            for line in text.splitlines()[:30]:
                print("#   " + line[:500], flush=True)
    reset()
    sys.exit(1 if failed else 0)
