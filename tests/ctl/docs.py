#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What README.md, the pages of docs/, the manual pages and --help tell people to type is right.

docs.py [DIR]   looks at the pages of DIR instead of this repository's; says what is wrong, and
                fails then. B is the folder of the programs, INSTALLED what `make install` installs

- A block of commands is marked sh and is valid to bash. With a mark "test: NAME" above it, a test
  runs it as it stands there.
- Of each other command: a target of make exists; gpusharectl takes verb and options, and a test
  runs that verb; a file of this repository exists; any other program is in ELSEWHERE, with the test
  that runs such a command, or why none does.
- Files below /usr with our name are installed. Links lead to a page, and to a heading on it.
"""
import fnmatch
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

TOP = os.path.abspath(os.path.dirname(__file__) + "/../..")
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.M | re.S)
MARK = re.compile(r"<!-- test: (\S+) -->\n$")
OURS = ("make", "gpusharectl", "kubectl-gpushare")
FOLDERS = "packaging|tests|docs|vendors|kmod|include|common|runtime|agent|controller|ctl|kube"
SHELL = {"if", "then", "else", "fi", "for", "do", "done", "cd", "echo", "true", "unset", "sleep"}

# Program: the test that runs such a command, with what stands there; or why nobody does.
ELSEWHERE = {
    "apt-get": "changes the machine; tests/packages installs the same files by dpkg",
    "base64": "decodes what another command printed",
    "bats": ("tests/suites", "bats --formatter tap"),
    "crictl": ("tests/runtime/containerd2-cri.bats", "crictl"),
    "dkms": ("tests/packages/dkms.sh", "install dkms"),
    "docker": "asks docker on the reader's machine for a process",
    "helm": ("tests/k8s/manifests.py", "chart"),
    "insmod": ("tests/vm/suite/smoke.sh", "insmod"),
    "jq": "shows what another command printed",
    "kubectl": ("tests/k8s/controller.bats", "kubectl"),
    "modinfo": "looks at a signature, and no kernel of the tests has Secure Boot",
    "modprobe": "loads the module; the tests load it with insmod, for it is not installed there",
    "mokutil": "speaks to a firmware with Secure Boot",
    "nsenter": ("tests/vm/suite/members.sh", "nsenter"),
    "pidof": "finds a process of the same block",
    "podman": ("tests/packages/image.sh", "podman_ build"),
    "reboot": "ends the machine",
    "rmmod": ("tests/vm/suite/smoke.sh", "rmmod"),
    "systemctl": ("tests/node/suite/unit.sh", "systemctl"),
    "uname": "tells the running kernel",
    "unshare": ("tests/vm/suite/members.sh", "unshare"),
}

found, used = [], set()


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def wrong(where, what):
    found.append(f"{where}: {what}")


# ---- What there is.

def make_targets():
    text = read(f"{TOP}/Makefile") + read(f"{TOP}/tests/tests.mk")
    scripts = "".join(read(path) for path in glob.glob(f"{TOP}/tests/*/*.sh"))
    targets = set()
    for line in re.findall(r"^([a-z][a-z0-9 -]*):(?!=)", text, re.M):
        targets |= set(line.split())
    return targets, text + scripts


def tests_of_gpusharectl():
    """All that the tests of gpusharectl and of whole nodes say."""
    paths = glob.glob(f"{TOP}/tests/ctl/*.bats") + glob.glob(f"{TOP}/tests/*/suite/*")
    paths += glob.glob(f"{TOP}/tests/runtime/*.bats")
    return "".join(read(path) for path in paths)


TARGETS, MAKE_TEXT = make_targets()
CTL_TESTS = tests_of_gpusharectl()
EMPTY = tempfile.mkdtemp()


# ---- Commands.

def check_make(where, args):
    for arg in args:
        name = arg.partition("=")[0]
        if "=" in arg:
            if not re.search(rf"\b{name}\b", MAKE_TEXT):
                wrong(where, f"make knows no {name}=")
        elif not arg.startswith("-") and arg not in TARGETS:
            wrong(where, f"there is no target {arg}")


def check_gpusharectl(where, args):
    """Verb and options are read as for a call, and then comes --help instead of the deed."""
    args = [str(os.getpid()) if re.match(r"^(\d+|\$\(.*)$", arg) and before == "--pid" else arg
            for before, arg in zip([""] + args, args)]
    verb = args[0] if args else ""
    if verb.startswith("--"):
        verb = ""
    run = subprocess.run([f"{TOP}/{os.environ.get('B', 'build')}/gpusharectl", *args, "--help"],
                         cwd=EMPTY, env={"GPUSHARE_CONFIG": f"{EMPTY}/none", "PATH": "/bin"},
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    if run.returncode:
        wrong(where, f"gpusharectl {' '.join(args)}: {run.stderr.strip()}")
    if verb == "kmod" and len(args) > 1:
        verb += " " + args[1]
    if verb and not re.search(rf"\b(ctl|gpusharectl\"?) {verb}\b|'{verb}\b", CTL_TESTS):
        wrong(where, f"no test runs gpusharectl {verb}")


def check_program(where, words):
    while words and (words[0] == "sudo" or re.match(r"^[A-Za-z_]+=", words[0])):
        words = words[1:]
    if not words or words[0] in SHELL:
        return
    program, args = words[0], words[1:]
    if program == "kubectl" and args[:1] == ["gpushare"]:
        program, args = "gpusharectl", args[1:]
    if program == "make":
        check_make(where, args)
    elif program == "gpusharectl":
        check_gpusharectl(where, args)
    elif re.match(rf"^({FOLDERS})/", program):
        if not os.access(f"{TOP}/{program}", os.X_OK):
            wrong(where, f"{program} is no program")
    elif program not in ELSEWHERE:
        wrong(where, f"{program}: in ELSEWHERE of tests/ctl/docs.py stands no test of it, and not "
              "why there is none")
    else:
        used.add(program)
    for arg in args:
        if re.match(rf"^({FOLDERS})/[\w./-]+$", arg) and not os.path.exists(f"{TOP}/{arg}"):
            wrong(where, f"there is no {arg}")


def commands(text):
    """The simple commands in a text for the shell, as words; those in $( ) first."""
    for inner in re.findall(r"\$\(([^()]*)\)", text):
        yield from commands(inner)
    text = re.sub(r"\$\(([^()]*)\)", "$(…)", text).replace("\\\n", " ")
    text = re.sub(r"(^|\s)#.*$", "", text, flags=re.M)
    text = re.sub(r"'[^']*'", lambda match: match.group().replace("\n", " "), text)
    for line in text.split("\n"):
        # A word that only looks as if the shell did something with it.
        lexer = shlex.shlex(line.replace("$(…)", "0"), posix=True, punctuation_chars=";&|<>")
        lexer.commenters, words, skip = "#", [], False
        lexer.whitespace_split = True
        for token in lexer:
            if re.match(r"^[;&|]+$", token):
                yield words
                words = []
            elif re.match(r"^[<>]", token):
                skip = True
            elif skip:
                skip = False
            else:
                words.append(token)
        yield words


def check_commands(where, text):
    try:
        for words in commands(text):
            check_program(where, words)
    except ValueError as error:
        wrong(where, f"can't be read: {error}")


def is_run(page, name):
    """Does a test run the block of that name?"""
    for path in glob.glob(f"{TOP}/tests/*/*.bats") + glob.glob(f"{TOP}/tests/*/*.bash"):
        text = read(path)
        if f"doc_block {page}" in text and re.search(rf"\b{name}\b", text):
            return True
    return False


def check_block(page, text, match):
    indent, kind, body = match.groups()
    line = text.count("\n", 0, match.start()) + 1
    where = f"{page}:{line}"
    body = re.sub(rf"^{indent}", "", body, flags=re.M)
    if kind == "":
        first = body.split()[0] if body.split() else ""
        if first in OURS + ("sudo", "kubectl"):
            wrong(where, "a block of commands is marked sh")
        return
    if kind != "sh":
        return
    run = subprocess.run(["bash", "-n"], input=body, text=True, stderr=subprocess.PIPE)
    if run.returncode:
        wrong(where, f"no valid commands: {run.stderr.strip()}")
        return
    mark = MARK.search(text[:match.start()].rstrip(" "))
    if not mark:
        check_commands(where, body)
    elif not is_run(page, mark.group(1)):
        wrong(where, f"no test runs the block \"{mark.group(1)}\"")


def check_inline(page, text):
    """Commands of ours in the middle of a text."""
    text = FENCE.sub("", text)
    for code in re.findall(r"`([^`\n]+)`", text):
        code = code.replace("…", "x").replace("\\|", "|")
        # What may be left out, and what stands for a name.
        code = code.replace("[", "").replace("]", "").replace("NS/POD/CONTAINER", "n/p/c")
        if re.match(r"^(sudo )?(make|gpusharectl|kubectl gpushare) [a-z-]", code):
            check_commands(page, re.sub(r"^name=\$\((.*)\)$", r"\1", code))


def check_manual(page):
    text = read(page).replace("\\e\n", "\\\n").replace("\\(dq", '"').replace("\\&", "")
    for block in re.findall(r"^\.Bd [^\n]*\n(.*?)^\.Ed", text, re.M | re.S):
        if re.match(r"^(\w+=\$\()?(gpusharectl|make) ", block):
            check_commands(page, block)


def check_help():
    for path in glob.glob("ctl/*.c") + ["runtime/dryrun.c"]:
        text = re.sub(r'"\s*\n\s*"', "", read(path))
        for example in re.findall(r'Example: (gpusharectl .*?)\\n', text):
            check_commands(path, example.replace('\\"', '"'))


# ---- Files and links.

def installed():
    top = os.environ.get("INSTALLED")
    if not top:
        return None
    ret = []
    for folder, folders, files in os.walk(top):
        ret += [os.path.join(folder, name)[len(top):] for name in folders + files]
    return ret


def check_files(page, text, files):
    text = text.replace("\\&", "").replace("\\-", "-")
    # (Folders of documentation are the packages'.)
    for path in re.findall(r"/usr/(?!share/doc/)(?:s?bin|libexec|share|lib/systemd)/"
                           r"[\w./*-]*gpushare[\w./*-]*", text):
        path = path.rstrip(".,:/")
        # F.json stands for any.
        if files is not None and not fnmatch.filter(files, path.replace("/F.json", "/*.json")):
            wrong(page, f"make install installs no {path}")


def anchors(text):
    """The names that headings have: lower case, letters, digits, - and _."""
    ret = set()
    for heading in re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.M):
        ret.add(re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-"))
    return ret


def check_links(page, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(path) and not os.path.exists(f"{TOP}/{path}"):
            wrong(page, f"there is no {path}")
        elif anchor and anchor not in anchors(read(path if os.path.exists(path) else
                                                   f"{TOP}/{path}")):
            wrong(page, f"{path} has no heading for #{anchor}")


def main():
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else TOP)
    files = installed()
    for page in ["README.md"] + sorted(glob.glob("docs/*.md")):
        text = read(page)
        for match in FENCE.finditer(text):
            check_block(page, text, match)
        check_inline(page, text)
        check_files(page, text, files)
        check_links(page, text)
    for page in sorted(glob.glob("docs/man/*")):
        check_manual(page)
        check_files(page, read(page), files)
    check_help()
    for program, test in sorted(ELSEWHERE.items()):
        if program not in used:
            wrong("tests/ctl/docs.py", f"{program} is in ELSEWHERE and in no page")
        elif isinstance(test, tuple) and (not os.path.exists(f"{TOP}/{test[0]}") or
                                          test[1] not in read(f"{TOP}/{test[0]}")):
            wrong("tests/ctl/docs.py", f"{test[0]} has no \"{test[1]}\"")
    os.rmdir(EMPTY)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
