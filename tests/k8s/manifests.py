#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""packaging/k8s: the kustomize base and the Helm chart say the same, hang together, and give no
more rights than they need to. Where helm or kubectl is there, it renders too. Prints TAP."""
import json
import os
import re
import shutil
import subprocess
import sys

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "runtime"))
import tap  # noqa: E402
from tap import need  # noqa: E402

BASE = os.path.join(ROOT, "packaging/k8s/base")
CHART = os.path.join(ROOT, "packaging/k8s/chart")
SYSTEM = "gpushare-system"


def load(text):
    return [o for o in yaml.safe_load_all(text) if o]


def read(path):
    with open(path) as f:
        return f.read()


def base():
    files = yaml.safe_load(read(BASE + "/kustomization.yaml"))["resources"]
    return [o for name in files for o in load(read(os.path.join(BASE, name)))]


def render(text, values):
    """What these templates use of Helm's language, and no more."""
    def pipe(match):
        parts = [p.strip() for p in match.group(2).split("|")]
        need(parts[0].startswith("."), parts)
        value = values
        for key in parts[0][1:].split("."):
            value = value[key]
        for part in parts[1:]:
            if part == "toJson":
                value = json.dumps(value)
            elif part == "toPrettyJson":
                value = json.dumps(value, indent=2)
            elif part.startswith("nindent "):
                indent = "\n" + " " * int(part.split()[1])
                value = indent + value.replace("\n", indent)
            else:
                need(False, "unknown function", part)
        return str(value)
    return re.sub(r"(\s*\{\{-|\{\{) (.*?) \}\}", pipe, text)


def chart():
    values = {"Values": yaml.safe_load(read(CHART + "/values.yaml")),
              "Release": {"Namespace": SYSTEM}}
    result = []
    for name in sorted(os.listdir(CHART + "/templates")):
        result += load(render(read(os.path.join(CHART, "templates", name)), values))
    return result


def keyed(objects):
    """Objects by kind and name; texts that are JSON, and CEL, as what they mean."""
    result = {}
    for o in objects:
        o = json.loads(json.dumps(o).replace("['gpushare-data']", '[\\"gpushare-data\\"]'))
        if o["kind"] == "ConfigMap":
            o["data"] = {k: json.loads(v) for k, v in o["data"].items()}
        key = o["kind"], o["metadata"]["name"], o["metadata"].get("namespace", "")
        need(key not in result, "twice", key)
        result[key] = o
    return result


def same(a, b):
    for key in sorted(set(a) | set(b)):
        need(a.get(key) == b.get(key), "differs:", key, json.dumps(a.get(key)),
             json.dumps(b.get(key)))


def without_namespace(objects):
    return {k: v for k, v in keyed(objects).items() if k[0] != "Namespace"}


def test_same():
    same(without_namespace(base()), keyed(chart()))


def test_every_file_is_used():
    named = set(yaml.safe_load(read(BASE + "/kustomization.yaml"))["resources"])
    need(named == set(os.listdir(BASE)) - {"kustomization.yaml"}, named)


def test_versions():
    version = read(ROOT + "/VERSION").strip()
    about = yaml.safe_load(read(CHART + "/Chart.yaml"))
    need(about["version"] == version and about["appVersion"] == version, about)
    for o in base():
        for image in re.findall(r'"image": "([^"]*)"', json.dumps(o)):
            need(image.endswith(":" + version), image)


def test_hangs_together():
    objects = keyed(base())
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        for (k, _, namespace), o in objects.items():
            if k == kind:
                need((o["roleRef"]["kind"], o["roleRef"]["name"], namespace) in objects, o)
                for s in o["subjects"]:
                    need(("ServiceAccount", s["name"], s["namespace"]) in objects, s)
    for workload in (objects["Deployment", "gpushare-controller", SYSTEM],
                     objects["DaemonSet", "gpushare-agent", SYSTEM]):
        pod = workload["spec"]["template"]
        need(("ServiceAccount", pod["spec"]["serviceAccountName"], SYSTEM) in objects)
        need(workload["spec"]["selector"]["matchLabels"].items() <=
             pod["metadata"]["labels"].items())
        volumes = {v["name"] for v in pod["spec"]["volumes"]}
        for c in pod["spec"]["containers"]:
            need({m["name"] for m in c["volumeMounts"]} == volumes, volumes)
    service = objects["Service", "gpushare-controller", SYSTEM]
    labels = objects["Deployment", "gpushare-controller", SYSTEM]["spec"]["template"]["metadata"][
        "labels"]
    need(service["spec"]["selector"].items() <= labels.items())
    for webhook in objects["MutatingWebhookConfiguration", "gpushare", ""]["webhooks"]:
        target = webhook["clientConfig"]["service"]
        need(("Service", target["name"], target["namespace"]) in objects, target)
        need(target["path"] == "/admit" and webhook["matchConditions"] and
             webhook["failurePolicy"] == "Fail", webhook)


def test_no_kinds_of_our_own():
    """API groups below k8s.io need Kubernetes' approval; keys of annotations and labels don't."""
    for kind, name, _ in keyed(base()):
        need(kind != "CustomResourceDefinition", name)
    for o in base():
        group = o["apiVersion"].rpartition("/")[0]
        need("gpushare" not in group, o["apiVersion"])


def test_folders_not_sockets():
    """Where a socket is mounted as a file, the next one of that name is not seen any more."""
    objects = keyed(base())
    manual = read(ROOT + "/docs/man/gpushare-config.5")
    pod = objects["DaemonSet", "gpushare-agent", SYSTEM]["spec"]["template"]["spec"]
    container, = pod["containers"]
    mounts = {m["name"]: m for m in container["volumeMounts"]}
    for volume in pod["volumes"]:
        where = volume.get("hostPath")
        if where:
            need(where.get("type", "") in ("", "Directory", "DirectoryOrCreate"), volume)
            need(not where["path"].endswith(".sock") and "subPath" not in mounts[volume["name"]],
                 volume)
            if where["path"] != "/":
                need(mounts[volume["name"]]["mountPath"] == where["path"], volume)
    # all of the node for reading alone, where agent/probe.h looks for it
    env = {e["name"]: e.get("value") for e in container["env"]}
    need(mounts["host"]["readOnly"] and
         mounts["host"]["mountPath"] == env["GPUSHARE_HOST_ROOT"] and
         '"GPUSHARE_HOST_ROOT"' in read(ROOT + "/agent/probe.h"), mounts["host"])
    kubelet, = (v["hostPath"]["path"] for v in pod["volumes"] if v["name"] == "kubelet")
    need(".Li kubelet_dir\n.Pq default Pa %s .\n" % kubelet in manual, kubelet)


def test_shadow_pods_are_not_evicted():
    """A drain takes them last; tests/k8s/switch.bats tries it."""
    budget = keyed(base())["PodDisruptionBudget", "gpushare-shadow-pods", SYSTEM]["spec"]
    # Kubernetes counts no maxUnavailable, nor a percentage, of pods that nobody owns
    need(set(budget) == {"minAvailable", "selector"} and budget["minAvailable"] == 2 ** 31 - 1,
         budget)
    labels = budget["selector"]["matchLabels"]
    need(set(budget["selector"]) == {"matchLabels"} and len(labels) == 1, budget)
    (key, value), = labels.items()
    need('"%s", "%s"' % (key, value) in read(ROOT + "/controller/shadow_make.c"), labels)
    for o in base():
        pod = o.get("spec", {}).get("template", {}).get("metadata", {})
        need(pod.get("labels", {}).get(key) != value, "no shadow pod", o)


def test_config():
    """The program takes the configuration, and its defaults are the names of these objects."""
    objects = keyed(base())
    config = objects["ConfigMap", "gpushare-config", SYSTEM]["data"]["config.json"]
    need("system:serviceaccount:%s:gpushare-controller" % SYSTEM in
         config["controller"]["platform_users"], config)
    classes = {k[1] for k in objects if k[0] == "PriorityClass"}
    need(set(config["controller"]["data_classes"]) <= classes, classes)
    manual = read(ROOT + "/docs/man/gpushare-config.5")
    for name in ("gpushare-controller-tls", "gpushare-controller", "gpushare"):
        need(".Li %s .\n" % name in manual, name)


def test_rights():
    """No verb on everything, no secret but our own, nothing written outside of our namespace."""
    objects = keyed(base())
    for (kind, name, _), o in objects.items():
        if kind not in ("Role", "ClusterRole"):
            continue
        for rule in o["rules"]:
            need("*" not in json.dumps(rule), rule)
            if "nonResourceURLs" in rule:
                need(name == "gpushare-metrics-reader" and
                     rule == {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}, rule)
                continue
            if "secrets" in rule["resources"]:
                need(kind == "Role" and (rule["verbs"] == ["create"] or
                                         rule["resourceNames"] == ["gpushare-controller-tls"]),
                     rule)
            if kind == "ClusterRole" and name == "gpushare-controller":
                writes = set(rule["verbs"]) - {"get", "list", "watch"}
                need(not writes or rule["resources"] == ["events"] or rule.get("resourceNames") or
                     rule["resources"][0] in ("tokenreviews", "subjectaccessreviews"), rule)
    # what an agent may do to other nodes' pods is taken away again
    policy = objects["ValidatingAdmissionPolicy", "gpushare-agent", ""]["spec"]
    need("system:serviceaccount:%s:gpushare-agent" % SYSTEM in
         policy["matchConditions"][0]["expression"], policy)
    need("oldObject.spec.nodeName == variables.nodes[0]" in
         policy["validations"][0]["expression"], policy)
    need("request.name == variables.nodes[0]" in policy["validations"][1]["expression"], policy)


def test_controller_policies():
    """What a stolen token of the controller must not do; tests/k8s/controller.bats tries it."""
    objects = keyed(base())
    for name, operations in (("gpushare-controller", ["CREATE", "UPDATE", "DELETE"]),
                             ("gpushare-controller-own", ["CREATE", "UPDATE"]),
                             ("gpushare-controller-webhook", ["CREATE", "UPDATE", "DELETE"])):
        policy = objects["ValidatingAdmissionPolicy", name, ""]["spec"]
        need(policy["failurePolicy"] == "Fail", policy)
        need(policy["matchConditions"][0]["expression"].endswith(
            "== 'system:serviceaccount:%s:gpushare-controller'" % SYSTEM), policy)
        for rule in policy["matchConstraints"]["resourceRules"]:
            need(rule["operations"] == operations, rule)
        need(objects["ValidatingAdmissionPolicyBinding", name, ""]["spec"] == {
            "policyName": name, "validationActions": ["Deny"]})
    # they name what RBAC names, and what the controller writes
    expression = objects["ValidatingAdmissionPolicy", "gpushare-controller-own", ""]["spec"][
        "validations"]
    for rule in objects["Role", "gpushare-controller", SYSTEM]["rules"]:
        for name in rule.get("resourceNames", []):
            need("object.metadata.name == '%s'" % name in json.dumps(expression), name)
    keys = json.dumps(objects["ValidatingAdmissionPolicy", "gpushare-controller", ""])
    header = read(ROOT + "/include/gpushare/annotations.h")
    with open(ROOT + "/controller/shadow_make.c") as f:
        made = set(re.findall(r"\bGS_KEY_\w+", f.read()))
    for key in made:
        name = re.search(r'#define %s GS_ANNOTATION_PREFIX "([^"]*)"' % key, header).group(1)
        need("'gpushare.k8s.io/%s'" % name in keys, name)


def test_view():
    """An agent writes its node's ConfigMap, reads none, and the names are the programs'."""
    objects = keyed(base())
    header = read(ROOT + "/include/gpushare/view.h")
    names = dict(re.findall(r'#define (GS_VIEW_\w+) (?:GS_ANNOTATION_PREFIX )?"([^"]*)"', header))
    need(names["GS_VIEW_NAMESPACE"] == SYSTEM, names)
    rules = objects["Role", "gpushare-agent", SYSTEM]["rules"]
    need(rules == [{"apiGroups": [""], "resources": ["configmaps"],
                    "verbs": ["create", "update"]}], rules)
    need(("RoleBinding", "gpushare-agent", SYSTEM) in objects)
    name = "gpushare-agent-view"
    policy = objects["ValidatingAdmissionPolicy", name, ""]["spec"]
    need(policy["failurePolicy"] == "Fail" and
         policy["matchConstraints"]["resourceRules"][0]["operations"] == ["CREATE", "UPDATE"] and
         policy["matchConditions"][0]["expression"].endswith(
             "== 'system:serviceaccount:%s:gpushare-agent'" % SYSTEM), policy)
    checks = [v["expression"] for v in policy["validations"]]
    need("object.metadata.name == '%s' + variables.nodes[0]" % names["GS_VIEW_PREFIX"]
         in checks[0] and "size(variables.nodes) == 1" in checks[0], checks)
    need("object.metadata.labels['gpushare.k8s.io/%s'] == '%s'" % (
        names["GS_VIEW_LABEL"], names["GS_VIEW_LABEL_VALUE"]) in checks[1], checks)
    need(objects["ValidatingAdmissionPolicyBinding", name, ""]["spec"] == {
        "policyName": name, "validationActions": ["Deny"]})


def optional(program, *args):
    path = shutil.which(program)
    if not path:
        return None
    p = subprocess.run([path] + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    need(p.returncode == 0, p.stderr.decode()[:2000])
    return load(p.stdout)


def test_kustomize():
    objects = optional("kubectl", "kustomize", BASE)
    if objects is not None:
        same(keyed(objects), keyed(base()))


def test_helm():
    objects = optional("helm", "template", "gpushare", CHART, "--namespace", SYSTEM)
    if objects is not None:
        same(keyed(objects), without_namespace(base()))


if __name__ == "__main__":
    tap.main(tap.named(globals()))
