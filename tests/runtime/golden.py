#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Golden tests of gpushare-runtime: what it makes of a config.json. Prints TAP.

    golden.py [-v] [CASE...]    all cases, or those named; -v shows what a case did

A case is a folder in cases/, named for its symptom. Each gets a node of its own (fakenode.py):

    args            first line: "# <where it was reported> <the symptom in words>". Each other line
                    is a command line of the runtime, run one after the other; what is expected is
                    expected of the last. @CREATE@ stands for containerd's create of the container
                    "target", @CREATE:x@ for that of another, @BUNDLE@ for the target's bundle. In
                    front may stand NAME=value or -NAME (environment) and @AS:name@ (argv[0])
    config.json     of the target, byte by byte
    sources/        config.json files of containers that are there before: <id>[.state...].json,
                    made in the order of their names; the states are those of Node.container()
    host            device nodes: path, type, major, minor[, kernel driver behind it]
    gpushare.json   configuration keys beside those that every test needs
    grants/         <name>.json: keys beside those of Node.grant()
    setup           a bash script that runs before; $BUNDLE, $HOME_DIR ...

and what is expected, one of the first three, and a check.py alone or beside any of them:

    expect.json     config.json afterwards: its meaning is compared, and what lies outside of the
                    edited places is compared byte by byte. The next runtime was started
    same            nothing was written, and the next runtime was started
    error           the whole message, with @ANY@ for what differs from run to run: in runc's log
                    file in runc's form, on one line of stderr, status 1, nothing changed or started
    check.py        check(t) has looked at the rest (class Check); but for "error", the next runtime
                    was started

With any of them may stand:

    record.json     members that the target's record in the registry has; null: it has none
    next            name of the next runtime that is started (default: runc)
"""
import difflib
import functools
import json
import os
import re
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fakenode  # noqa: E402
import fencing  # noqa: E402
import jsontext  # noqa: E402
import refusal  # noqa: E402
from refusal import State  # noqa: E402
from tap import Failed, need  # noqa: E402

CASES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")
LOGS = os.path.join(fakenode.TOP, "build/test-logs/golden")
TARGET = "target"


class Case:
    def __init__(self, node, name):
        self.node, self.name, self.folder = node, name, os.path.join(CASES, name)
        self.said = []

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def has(self, name):
        return os.path.exists(self.path(name))

    def json(self, *parts):
        return json.loads(fakenode.read(self.path(*parts)))

    def say(self, *words):
        self.said.append(" ".join(str(w) for w in words))

    def place(self, text):
        bundle = self.node.bundle(TARGET)
        return (text.replace("@BUNDLE@", bundle).replace("@HOME@", fakenode.HOME)
                .replace("@RUN@", fakenode.RUN).replace("@VENDORS@", fakenode.VENDORS))

    # What is there before.
    def prepare(self):
        node = self.node
        node.reset()
        if self.has("gpushare.json"):
            keys = self.json("gpushare.json")
            node.configure(keys)
            if keys.get("cri") == "cri-o":
                node.layout = "cri-o"
        if self.has("host"):
            for line in fakenode.read(self.path("host")).decode().splitlines():
                if line and not line.startswith("#"):
                    path, kind, major, minor, *driver = line.split()
                    node.device(path, kind, int(major), int(minor), *driver)
        if self.has("proc-devices"):
            node.bind(fakenode.read(self.path("proc-devices")), "/proc/devices")
        for file in sorted(os.listdir(self.path("grants")) if self.has("grants") else []):
            node.grant(file.split(".")[0], **self.json("grants", file))
        for file in sorted(os.listdir(self.path("sources")) if self.has("sources") else []):
            name, *state = file.removesuffix(".json").split(".")
            node.container(name, fakenode.read(self.path("sources", file)), state)
        if self.has("config.json"):
            node.make_bundle(TARGET, fakenode.read(self.path("config.json")))
        else:
            os.makedirs(node.bundle(TARGET))
        if self.has("setup"):
            env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "BUNDLE": node.bundle(TARGET),
                   "NODE": fakenode.HOME, "BIN": fakenode.BIN, "RUN": fakenode.RUN,
                   "LIB": fakenode.LIB, "VENDORS": fakenode.VENDORS, "CONFIG": fakenode.CONFIG,
                   "RUNTIME": fakenode.RUNTIME}
            done = subprocess.run(["/bin/bash", "-eu", self.path("setup")], env=env,
                                  cwd=node.bundle(TARGET), capture_output=True, timeout=30)
            need(done.returncode == 0, "setup failed:", done.stderr.decode())

    def command_lines(self):
        lines = fakenode.read(self.path("args")).decode().splitlines()
        need(re.match(r"# \S+[#:]\S+ .+", lines[0]),
             "args: the first line must be '# <repo>#<number> <symptom>'")
        return [shlex.split(line) for line in lines[1:] if line and not line.startswith("#")]

    def run_line(self, words):
        env = {"PATH": fakenode.BIN, "LANG": "C", "GPUSHARE_CONFIG": fakenode.CONFIG}
        argv0 = fakenode.RUNTIME
        words = list(words)
        while words and re.match(r"[A-Z_]+=|-[A-Z_]+$|@AS:", words[0]):
            word = words.pop(0)
            if word.startswith("@AS:"):
                argv0 = fakenode.HOME + "/as/" + word[4:-1]
            elif word.startswith("-"):
                env.pop(word[1:], None)
            else:
                key, _, value = word.partition("=")
                env[key] = self.place(value)
        args = []
        for word in words:
            other = re.fullmatch(r"@CREATE(?::([^@]+))?@", word)
            if other:
                args += self.node.create_args(other.group(1) or TARGET)
            else:
                args.append(self.place(word))
        # conmon's and the shim's pipes must come through, and nothing else.
        pipe = os.pipe()
        os.set_inheritable(pipe[1], True)
        before = State(self.node)
        result = self.node.run(args, argv0=argv0, env=env, cwd=self.node.bundle(TARGET),
                               keep=(pipe[1],))
        link = os.readlink("/proc/self/fd/%d" % pipe[1])
        self.say("ran", *args, "-> status", result.status)
        self.say("stderr:", result.err.decode("utf-8", "replace").strip())
        need(b"Sanitizer" not in result.err and result.status != 99, "a sanitizer's report")
        need(result.status is not None, "it hangs")
        need(result.status >= 0, "killed by signal", result.status)
        if result.status == fakenode.STARTED:
            self.check_exec(result, args, env, pipe[1], link)
        os.close(pipe[0])
        os.close(pipe[1])
        return result, before

    def check_exec(self, result, args, env, kept, link):
        """The next runtime got what we got: arguments, environment, open files; and we said
        nothing."""
        need(len(result.calls) == 1, "the next runtime ran", len(result.calls), "times")
        call = result.calls[0]
        need(call.args[1:] == args, "it got the arguments", call.args[1:], "and not", args)
        wanted = self.place(fakenode.read(self.path("next")).decode().strip()
                            if self.has("next") else "runc")
        need(call.exe == os.path.join(fakenode.BIN, wanted), "it was", call.exe)
        need(call.args[0] == call.exe or os.path.realpath(call.args[0]) == call.exe,
             "its argv[0] is", call.args[0])
        given = dict(env)
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                given.setdefault(name, os.environ[name])
        got = dict(e.split("=", 1) for e in call.env)
        need(got == given and len(call.env) == len(given), "its environment is", call.env)
        need(sorted(call.fds) == sorted({0, 1, 2, kept}), "its open files are", call.fds)
        need(call.fds[kept] == link, "the inherited file is", call.fds[kept])
        need(result.out == b"", "something on stdout:", result.out)
        need(result.err == b"", "something on stderr:", result.err)

    # What is expected.
    def test(self):
        self.prepare()
        lines = self.command_lines()
        plain = len(lines) == 1 and lines[0][-1] == "@CREATE@"
        dry = self.dry_run() if plain and not self.has("error") else None
        for words in lines[:-1]:
            result, _ = self.run_line(words)
            need(result.status == fakenode.STARTED, "an earlier line failed:", result.err)
        result, before = self.run_line(lines[-1])
        after = State(self.node)
        need(not after.temporary, "a temporary file is left:", after.temporary)
        need(any(map(self.has, ("expect.json", "same", "error", "check.py"))),
             "the case expects nothing")
        if self.has("error"):
            self.expect_error(result, before)
        else:
            self.expect_started(result, before, after)
            if dry is not None:
                need(dry == after.text, "gpushare-spec says something else than was written")
            need(not plain or dry is not None or after.text == before.text,
                 "gpushare-spec can't show what was written")
        if self.has("check.py"):
            self.run_check(before, after)
        if plain and not self.has("error") and after.text != before.text:
            self.expect_no_change_again(lines[0], after)
        if self.has("record.json"):
            self.expect_record(self.json("record.json"))

    def dry_run(self):
        """gpushare-spec tells the new config.json beforehand, and changes nothing."""
        before = State(self.node)
        result = self.node.run(["--json", "--id", TARGET, self.node.bundle(TARGET)],
                               program=fakenode.SPEC, argv0="gpushare-spec")
        after = State(self.node)
        if result.status != 0:
            return None  # a bundle that it can't show; the create that follows is the test
        need(before.everything == after.everything, "gpushare-spec changed something")
        return result.out

    def expect_started(self, result, before, after):
        need(result.status == fakenode.STARTED, "status", result.status, "and", result.err)
        need(before.text is None or after.mode == before.mode,
             "owner or mode of config.json changed:", before.mode, after.mode)
        if self.has("same"):
            if after.text != before.text:
                raise Failed("config.json changed\n" + diff(before.text, after.text))
            need(after.place == before.place, "config.json was written anew")
            return
        differs = jsontext.outside_differs(before.text, after.text)
        need(differs is None, differs)
        if self.has("expect.json"):
            expected = fakenode.read(self.path("expect.json"))
            if jsontext.semantic(after.text) != jsontext.semantic(expected):
                raise Failed("config.json is not what was expected\n" + diff(expected, after.text))

    def run_check(self, before, after):
        names = {"Failed": Failed}
        exec(compile(fakenode.read(self.path("check.py")), self.path("check.py"), "exec"), names)
        names["check"](Check(self, before, after))

    def expect_no_change_again(self, words, after):
        """A second run on our own output is no change at all."""
        result, _ = self.run_line(words)
        again = State(self.node)
        need(result.status == fakenode.STARTED, "the second run failed:", result.err)
        if again.text != after.text:
            raise Failed("the second run changed\n" + diff(after.text, again.text))
        need(again.place == after.place, "the second run wrote config.json anew")

    def expect_error(self, result, before):
        words = self.command_lines()[-1]
        log = self.node.bundle(TARGET) + "/log.json"
        logs = any(w.startswith("@CREATE") or w.endswith("@BUNDLE@/log.json") for w in words)
        text = any("--log-format" in w for w in words) and "text" in " ".join(words)
        refusal.check(self.node, result,
                      self.place(fakenode.read(self.path("error")).decode().strip()), before,
                      log if logs else None, text)

    def expect_record(self, wanted):
        record = self.node.record(TARGET)
        if wanted is None:
            need(record is None, "the registry has a record:", record)
            return
        need(record, "the registry has no record")
        for key, value in wanted.items():
            need(record.get(key) == value, "the record's", key, "is", json.dumps(record.get(key)),
                 "and not", json.dumps(value))


def diff(expected, got):
    def lines(text):
        try:
            return json.dumps(json.loads(text or b"null"), indent=1, sort_keys=True).splitlines()
        except (ValueError, RecursionError):
            return repr(text).split("\\n")
    return "\n".join(list(difflib.unified_diff(lines(expected), lines(got), "expected", "got",
                                               lineterm="", n=2))[:60])


class Check(fencing.Checks):
    """What a check.py may use: old and new are the config.json texts, before and after, as Python
    objects old_spec and new_spec; node is the node."""

    def __init__(self, case, before, after):
        self.case, self.node = case, case.node
        self.old, self.new = before.text, after.text
        self.need = need

    @functools.cached_property
    def old_spec(self):
        return json.loads(self.old)

    @functools.cached_property
    def new_spec(self):
        return json.loads(self.new)


def main():
    args = sys.argv[1:]
    verbose = "-v" in args
    names = [a.rstrip("/").split("/")[-1] for a in args if a != "-v"]
    names = names or sorted(n for n in os.listdir(CASES) if n != "README.md")
    missing = [n for n in names if not os.path.isdir(os.path.join(CASES, n))]
    if missing:
        sys.exit("golden.py: no such case: " + ", ".join(missing))
    node = fakenode.enter()
    sys.setrecursionlimit(20000)  # some cases are nested deeply
    failed = 0
    print("1..%d" % len(names))
    for number, name in enumerate(names, 1):
        case = Case(node, name)
        try:
            case.test()
            print("ok %d - %s" % (number, name), flush=True)
        except Exception as error:  # one broken case must not hide the others
            failed += 1
            if not isinstance(error, Failed):
                error = "%s: %s" % (type(error).__name__, error)
            print("not ok %d - %s" % (number, name))
            for line in str(error).splitlines() + case.said:
                print("#   " + line, flush=True)
            keep(node, name)
        else:
            for line in case.said if verbose else []:
                print("#   " + line)
    node.reset()
    sys.exit(1 if failed else 0)


def keep(node, name):
    """The bundle as it was left, for whoever looks into a failure."""
    for file in ("config.json", "log.json"):
        path = os.path.join(node.bundle(TARGET), file)
        if os.path.isfile(path):
            fakenode.write(os.path.join(LOGS, name, file), fakenode.read(path))


if __name__ == "__main__":
    main()
