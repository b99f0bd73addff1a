#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Keys in the code and in the docs agree: of the configuration, of the vendor catalogue, of
annotations, labels and resources.

keys.py [DIR]   looks at DIR instead of this repository; says where they do not, and fails then

A key of the configuration has its item in gpushare-config(5), with its type; one of the catalogue
is in gpushare-vendors(5); an annotation, label or resource has its row in docs/annotations.md.
Nothing of the kind stands in a page, manual page or manifest that the code does not have.
"""
import glob
import os
import re
import sys

CONFIG_PAGE = "docs/man/gpushare-config.5"
VENDOR_PAGE = "docs/man/gpushare-vendors.5"
PAGE = "docs/annotations.md"
KEY = re.compile(r'\{\s*"([a-z_]+)",\s*GS_DOC_([A-Z]+),\s*(?:true|false)\s*\}')
TABLE = re.compile(r"gs_doc_key (\w+)\[[^\]]*\] = \{(.*?)\n?\};", re.S)
MACRO = re.compile(r"^#define (KUBE_KEYS)\b((?:.*\\\n)*.*)", re.M)
# What the page calls a type of the code.
TYPES = {"STRING": ("string", "path"), "BOOL": ("boolean",), "UINT": ("number",),
         "LIST": ("list of",), "OBJECT": ("object",), "PATH": ("path", "string"),
         "DURATION": ("length of time",), "QUANTITY": ("string",)}
# Tables of common/sections.c: the section of the page, and the item of the object there.
SECTIONS = {"gs_agent_keys": ("THE AGENT", None), "gs_http_keys": ("THE AGENT", "http"),
            "gs_plugins_keys": ("THE AGENT", "device_plugins"),
            "gs_oversale_keys": ("THE AGENT", "oversale"),
            "gs_view_keys": ("THE AGENT", "cluster_view"),
            "gs_kube_node_keys": ("THE AGENT", "kubernetes"),
            "gs_controller_keys": ("THE CONTROLLER", None),
            "gs_shadow_keys": ("THE CONTROLLER", "shadow"),
            "gs_kube_keys": ("THE CONTROLLER", "kubernetes")}
ITEM = re.compile(r"^\.It Li (.+?) : (.*)$")
WORD = re.compile(r"^[a-z][a-z_]*$")

found = []


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


# ---- Manual pages.

def items(page):
    """{(section, depth 1 item, depth 2 item or None): (type, text)} of the lists of keys."""
    ret, depth, section, outer, inner = {}, 0, None, None, None
    for line in read(page).split("\n"):
        if line.startswith(".Sh "):
            section, depth, outer, inner = line[4:], 0, None, None
        elif line.startswith(".Bl "):
            depth += 1
        elif line.startswith(".El"):
            depth -= 1
            inner = inner if depth > 1 else None
        match = ITEM.match(line)
        if match and depth <= 2:
            names = [name for name in re.split(r" , | ", match.group(1)) if name != "Li"]
            for name in names:
                if depth == 1:
                    outer, inner = name, None
                else:
                    inner = name
                ret[section, outer, inner] = [match.group(2), ""]
        for key in ((section, outer, None), (section, outer, inner)):
            if key in ret:
                ret[key][1] += line + "\n"
    return ret


def words(text):
    """The words that a text sets in .Li, or lists in .It Li."""
    ret = []
    for line in text.split("\n"):
        if re.match(r"^\.(It )?(Li|Pq|Op)\b", line) and "Li" in line:
            ret += line.replace("\\&", "").replace('"', "").split("Li", 1)[1].split()
    return ret


# ---- The configuration.

def tables(path):
    """{name of the table: {key: type}}; a local table is called by its function."""
    text = read(path)
    macros = dict(MACRO.findall(text))
    ret = {}
    for name, body in TABLE.findall(text):
        for macro, keys in macros.items():
            body = body.replace(macro, keys)
        if name in ("keys", "profiles"):
            before = text[:text.index(body)]
            name = re.findall(r"^static int (\w+)\(", before, re.M)[-1]
        ret[name] = dict(KEY.findall(body))
    return ret


def check_item(page, section, outer, key, kind):
    if outer is None:
        item = page.get((section, key, None))
        if not item:
            found.append(f"{CONFIG_PAGE}: no item {key} in {section}")
        elif not item[0].startswith(TYPES[kind]):
            found.append(f"{CONFIG_PAGE}: {key} is \"{item[0]}\", in the code {kind}")
        return
    item = page.get((section, outer, None))
    text = item[1] if item else ""
    if key not in words(text) and (section, outer, key) not in page:
        # The controller's "kubernetes" is said to be as the agent's.
        if outer == "kubernetes" and section == "THE CONTROLLER":
            return
        found.append(f"{CONFIG_PAGE}: {outer} in {section} does not tell of {key}")


def check_config():
    page = items(CONFIG_PAGE)
    local, shared = tables("common/config.c"), tables("common/sections.c")
    places = {"get_all": ("KEYS", None), "get_log": ("KEYS", "log"),
              "get_profiles": ("KEYS", "profiles")}
    known, allowed = set(), set()
    if set(local) != set(places) or set(shared) != set(SECTIONS):
        found.append("common: the tables of keys are no longer those that this check knows")
        return known
    for table, place in list(places.items()) + list(SECTIONS.items()):
        keys = local[table] if table in places else shared[table]
        for key, kind in keys.items():
            known.add(key)
            allowed.add((place[0], place[1] or key, key if place[1] else None))
            check_item(page, place[0], place[1], key, kind)
    for key in page:
        if key not in allowed:
            found.append(f"{CONFIG_PAGE}: {'.'.join(filter(None, key[1:]))} is no key of the code")
    for word in set(words(read(CONFIG_PAGE))):
        if "_" in word and WORD.match(word) and word not in known | {"user_id"}:
            found.append(f"{CONFIG_PAGE}: {word} is no key of the code")
    return known


def check_vendors():
    known = set()
    for path in ("common/catalogue.c", "common/catalogue_check.c"):
        known |= {key for key, _ in KEY.findall(read(path))}
    # A name of a field that an entry invents is none of ours.
    text = read(VENDOR_PAGE)
    told = set(words(text))
    for key in sorted(known - told):
        found.append(f"{VENDOR_PAGE}: {key} is missing")
    for _, outer, inner in items(VENDOR_PAGE):
        if (inner or outer) not in known:
            found.append(f"{VENDOR_PAGE}: {inner or outer} is no key of the code")
    return known


def check_json(known):
    """Keys in pages' JSON: in blocks, and in backticks."""
    for path in ["README.md"] + sorted(glob.glob("docs/*.md")):
        text = read(path)
        parts = re.findall(r"^ *```json\n(.*?)^ *```", text, re.M | re.S)
        parts += re.findall(r"`([^`\n]*\"[a-z_]+\": [^`\n]*)`", text)
        for part in parts:
            for key in re.findall(r'"([a-z_]+)":', part):
                # A message about config.json; what an inventory's answer looks like.
                if key not in known | {"linux", "uuid"}:
                    found.append(f"{path}: {key} is no key of the configuration or catalogue")


# ---- Annotations, labels, resources.

def section(text, name):
    return text.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


def rows(text):
    """What stands in backticks in first columns."""
    ret = set()
    for line in text.split("\n"):
        if line.startswith("| `"):
            ret |= set(re.findall(r"`([^`]+)`", line.split(" | ")[0]))
    return ret


def differ(what, code, page):
    for name in sorted(code - page):
        found.append(f"{PAGE}: {what} {name} is missing")
    for name in sorted(page - code):
        found.append(f"{PAGE}: {what} {name} is in no code")


def check_annotations():
    header = read("include/gpushare/annotations.h")
    code = {"gpushare.k8s.io/" + name for name in
            re.findall(r'^#define GS_KEY_\w+ GS_ANNOTATION_PREFIX "([^"]+)"', header, re.M)}
    each = {"gpushare.k8s.io/" + name for name in ("container-devices-from", "vcpu", "vmem")}
    page = read(PAGE)
    if not code:
        found.append("include/gpushare/annotations.h: no key: this check no longer finds them")
    told = rows(section(page, "Annotations"))
    differ("annotation", code | {key + ".<container>" for key in each}, told)
    labels = rows(section(page, "Labels"))
    manifests = sorted(path for path in glob.glob("packaging/**/*", recursive=True)
                       if path.endswith((".yaml", ".tpl", ".json")))
    used = "".join(read(path) for path in manifests + ["controller/admission.c"])
    for label in sorted(labels):
        # The label of nodes has the annotation's name unless the configuration has another.
        if label not in used and label not in code:
            found.append(f"{PAGE}: label {label} is in no manifest and in no code")
    pages = ["README.md"] + glob.glob("docs/*.md") + glob.glob("docs/man/*") + manifests
    for path in sorted(pages + glob.glob("ctl/*.c")):
        for name in set(re.findall(r"gpushare\.k8s\.io/[A-Za-z_-]+", read(path))):
            if name not in code | labels:
                found.append(f"{path}: {name} is no annotation and no label")
    resources = set(re.findall(r'^#define GS_RESOURCE_\w+ "([^"]+)"',
                               read("include/gpushare/resources.h"), re.M))
    differ("resource", resources, rows(section(page, "Resources")))


def main():
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(__file__) + "/../..")
    known = check_config()
    check_json(known | check_vendors())
    check_annotations()
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
