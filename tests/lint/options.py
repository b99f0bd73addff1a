#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What gpusharectl and the services take: code, --help and manual pages agree.

options.py [DIR]   looks at DIR instead of this repository; says where they do not, and fails then

For each verb of gpusharectl: every option of the code stands in its help, in the synopsis and in
the verb's section of gpusharectl(8), and none stands there that the code does not have. The words
that completion offers behind an option or verb are of options and verbs that there are. The same
for gpushared(8), gpushare-controller(8) and gpushare-hook in gpushare-runtime(8). Checks of
gpusharectl doctor stand in gpusharectl(8).
"""
import glob
import os
import re
import sys

PAGE = "docs/man/gpusharectl.8"
COMPLETION = ("packaging/completion/gpusharectl.bash", "packaging/completion/_gpusharectl")
LONGS = re.compile(r"struct option \w+\[\] = \{(.*?)\n\t\};(.*?)\n\}", re.S)
LONG = re.compile(r'\{\s*"([a-z-]+)",\s*\w+_argument')
SHORTS = re.compile(r'ctl_getopt\(&?(\w+), argc, argv, ":([a-z:]*)"')
OF_CLUSTER = re.compile(r'(call->cluster) \? ":([a-z:]*)"')
VERB = re.compile(r'^const struct ctl_verb ctl_\w+ = \{\n\t\.name = "(\w+)",(.*?)^\};', re.M | re.S)
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
OPTION = re.compile(r"(?<![\w/-])(--?[a-z][a-z-]*)")
# Not of one verb, or of a part of it.
PARTS = {"inspect.c": ["inspect"], "top.c": ["top"], "kmod_status.c": ["kmod"],
         "kmod_watch.c": ["kmod"], "kmod_events.c": ["kmod", "events"]}
SERVICES = {"docs/man/gpushared.8": ["agent/main.c", "common/program.c"],
            "docs/man/gpushare-controller.8": ["controller/main.c", "common/program.c"],
            "docs/man/gpushare-runtime.8": ["runtime/hook.c"]}
HELP = {"-h", "--help"}
# As parts of kubectl gpushare these take the options of ctl/inspect.h, too.
CLUSTER = {"inspect.c", "top.c"}

found = []


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def text_of(code):
    return "".join(LITERAL.findall(code)).replace("\\n", "\n").replace('\\"', '"')


def cluster_options():
    return read("ctl/inspect.h").replace("\\\n", "")


def in_code():
    """{verb: options}, {verb: help}"""
    options, helps = {}, {}
    for path in sorted(glob.glob("ctl/*.c")):
        text = read(path)
        for name, body in VERB.findall(text):
            helps[name] = text_of(body.partition(".help =")[2])
        for longs, rest in LONGS.findall(text):
            if os.path.basename(path) in CLUSTER:
                longs += cluster_options()
            call = SHORTS.search(rest) or OF_CLUSTER.search(rest)
            if not call:
                found.append(f"{path}: options without ctl_getopt(): this check is too old")
                continue
            verbs = PARTS.get(os.path.basename(path), [call.group(1).replace("ctl_", "")])
            names = {"--" + name for name in LONG.findall(longs)}
            names |= {"-" + c for c in call.group(2) if c != ":"}
            for verb in verbs:
                options.setdefault(verb, set()).update(names)
    # The one verb that is a program of its own.
    text = read("runtime/dryrun.c")
    options["spec"] = {"--" + name for name in LONG.findall(text)}
    helps["spec"] = text_of(text[text.index("usage(void"):text.index("struct call {")])
    return options, helps


def in_help(text):
    """Options in a help; its example may be of other programs, too."""
    return set(OPTION.findall(text.partition("\nExample: ")[0]))


def flags(lines):
    """The options that .Fl sets in lines of a manual page."""
    ret = set()
    for line in lines:
        for name in re.findall(r"\bFl (-?[a-z][a-z-]*)", line):
            ret.add("-" + name)
        # .Fl n , -count Ar count
        for name in re.findall(r"\bFl [a-z] , (-[a-z-]+)", line):
            ret.add("-" + name)
    return ret


def in_page():
    """{verb: options of the synopsis}, {verb: options that have an item in its section}"""
    text = read(PAGE)
    synopsis, sections = {}, {}
    for call in text.partition(".Sh SYNOPSIS")[2].partition(".Sh ")[0].split("\n.Nm")[1:]:
        verb = re.search(r"Cm (\w+)", call).group(1)
        synopsis.setdefault(verb, set()).update(flags(call.split("\n")))
    for part in text.partition(".Sh DESCRIPTION")[2].partition("\n.Sh ")[0].split("\n.Ss ")[1:]:
        verb = part.split()[0]
        sections.setdefault(verb, set()).update(
            flags(line for line in part.split("\n") if line.startswith(".It Fl ")))
    part = text.partition(".Sh THE CLUSTER")[2].partition("\n.Sh ")[0]
    cluster = flags(line for line in part.split("\n") if line.startswith(".It Fl "))
    cluster &= {"--" + name for name in LONG.findall(cluster_options())} | {"-n"}
    for name in CLUSTER:
        sections.setdefault(name.replace(".c", ""), set()).update(cluster)
    return synopsis, sections


def differ(where, verb, have, want):
    for name in sorted(want - have):
        found.append(f"{where}: {verb} lacks {name}")
    for name in sorted(have - want):
        found.append(f"{where}: {verb} has {name}, which is in no code")


def check_ctl():
    options, helps = in_code()
    synopsis, sections = in_page()
    verbs = set(re.findall(r"&ctl_(\w+)", read("ctl/main.c").partition("verbs[] = {")[2]
                           .partition("};")[0]))
    for where, have in (("--help", set(helps)), (f"{PAGE}, SYNOPSIS", set(synopsis)),
                        (f"{PAGE}, DESCRIPTION", set(sections)), ("options", set(options))):
        differ(where, "the list of verbs", have, verbs)
    for verb in sorted(verbs & options.keys() & helps.keys()):
        own = options[verb] - HELP
        # A short form that has a long one need not stand in a synopsis, nor the other way round.
        differ(f"gpusharectl {verb} --help", verb, in_help(helps[verb]) - HELP, own)
        differ(f"{PAGE}, its section", verb, sections.get(verb, set()) - HELP, own)
        extra = synopsis.get(verb, set()) - own
        differ(f"{PAGE}, SYNOPSIS", verb, extra, set())
        if own and not synopsis.get(verb):
            found.append(f"{PAGE}, SYNOPSIS: {verb} has no options")
        if "\nExample: " not in helps[verb] and "Example: " not in helps[verb]:
            found.append(f"gpusharectl {verb} --help: no example")
    for path in COMPLETION:
        for verb, option in re.findall(r"\b([a-z]+)/(--?[a-z-]+)", read(path)):
            if option not in options.get(verb, set()):
                found.append(f"{path}: {verb} has no {option}")


def check_doctor():
    checks = re.findall(r'^\t\{ "([a-z-]+)", doctor_\w+ \},', read("ctl/doctor.c"), re.M)
    section = read(PAGE).partition("\n.Ss doctor\n")[2].partition("\n.Ss ")[0]
    told = []
    for line in section.split("\n"):
        if line.startswith(".It ") and not line.startswith(".It Fl"):
            told += [word for word in line[4:].replace(",", " ").split() if word != "Cm"]
    differ(f"{PAGE}, section doctor", "the list of checks", set(told), set(checks))


def check_services():
    for page, paths in SERVICES.items():
        have = flags(read(page).split("\n"))
        for path in paths:
            for name in LONG.findall(read(path)):
                if name != "help" and "--" + name not in have:
                    found.append(f"{page}: --{name} of {path} is missing")


def main():
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(__file__) + "/../..")
    check_ctl()
    check_doctor()
    check_services()
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
