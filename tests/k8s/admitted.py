#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a real API server lets be done: by whoever has the controller's token or an agent's, and by
all while no controller runs. For controller.bats: $NODE_DIR has an administrator's certificate,
$CLUSTER_SERVER is where. Prints TAP; arguments choose tests by their names."""
import base64
import copy
import http.client
import json
import os
import ssl
import sys
import time
from urllib.parse import urlsplit

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "runtime"))
import tap  # noqa: E402
from tap import Failed, need  # noqa: E402

SYSTEM = "gpushare-system"
CONTROLLER = "system:serviceaccount:%s:gpushare-controller" % SYSTEM
AGENT = "system:serviceaccount:%s:gpushare-agent" % SYSTEM
PODS = "/api/v1/namespaces/%s/pods"
WEBHOOK = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/gpushare"
NO_ROOM = "0/1 nodes are available: 1 Insufficient gpushare/share-gpu."
PREFIX = "gpushare.k8s.io/"


class Api:
    def __init__(self):
        pki = os.environ["NODE_DIR"] + "/pki/"
        context = ssl.create_default_context(cafile=pki + "ca.crt")
        context.load_cert_chain(pki + "admin.crt", pki + "admin.key")
        self.http = http.client.HTTPSConnection(urlsplit(os.environ["CLUSTER_SERVER"]).netloc,
                                                timeout=60, context=context)

    def ask(self, method, path, body=None, user=None, node=None, kind="application/json"):
        """(status, answer). @user: in whose name an administrator asks; @node: to which that one's
        token is bound."""
        headers = {"Content-Type": kind}
        if user:
            headers["Impersonate-User"] = user
            headers["Impersonate-Group"] = "system:authenticated"
        if node:
            headers["Impersonate-Extra-authentication.kubernetes.io%2Fnode-name"] = node
        self.http.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = self.http.getresponse()
        text = response.read()
        try:
            return response.status, json.loads(text)
        except ValueError:  # nothing, from a watch; or an error that is no Status
            return response.status, {"message": text.decode()}

    def well(self, *args, **more):
        status, answer = self.ask(*args, **more)
        need(status in (200, 201), answer.get("message"), args)
        return answer

    def refused(self, says, *args, **more):
        """Is not done, and the server's words contain @says."""
        status, answer = self.ask(*args, **more)
        need(status >= 400 and says in answer["message"], "should be refused:", says, "; it is",
             status, answer.get("message"), args, more)


api = None


def pod(name, resource=None, annotations=None, **spec):
    container = {"name": "main", "image": "none"}
    if resource:
        container["resources"] = {"limits": {resource: "1"}}
    return {"metadata": {"name": name, "annotations": {
        PREFIX + k: v for k, v in (annotations or {}).items()}},
            "spec": dict({"schedulerName": "nobody", "containers": [container]}, **spec)}


def create(obj, namespace="default"):
    return api.well("POST", PODS % namespace, obj)


def delete(name, namespace="default"):
    api.well("DELETE", PODS % namespace + "/" + name, {"gracePeriodSeconds": 0})


def merge(path, patch, **more):
    return ("PATCH", path, patch), dict(more, kind="application/merge-patch+json")


def shadow_of(name):
    """The shadow pod of a share pod that waits, and that is made so."""
    uid = create(pod(name, "gpushare/share-gpu"))["metadata"]["uid"]
    args, more = merge(PODS % "default" + "/%s/status" % name, {"status": {"conditions": [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
         "message": NO_ROOM}]}})
    api.well(*args, **more)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        status, answer = api.ask("GET", PODS % SYSTEM + "/shadow-" + uid)
        if status == 200:
            return answer
        time.sleep(0.2)
    raise Failed("no shadow pod is made")


def label(key, value):
    return {"metadata": {"labels": {key: value}}}


# How a thief would change a shadow pod: keys are its annotations, c one of its containers.
PODS_REFUSED = {
    "shadow pods alone": [
        'del keys["gpushare.k8s.io/shadow"]',
        'keys["gpushare.k8s.io/shadow"] = "false"',
        'del p["metadata"]["annotations"]',
    ],
    "receives nothing": [
        'keys["gpushare.k8s.io/grant"] = "x"',
        'keys["gpushare.k8s.io/identity"] = "a/b/c"',
        'keys["gpushare.k8s.io/container-devices-from"] = "card=a/b/c"',
        'keys["gpushare.k8s.io/container-devices-from.card"] = "a/b/c"',
    ],
    "in no namespace of the host": [
        'spec["hostPID"] = True',
        'spec["hostIPC"] = True',
        'spec["hostNetwork"] = True',
        'spec["nodeName"] = "node-1"',
    ],
    "has no token": [
        'spec["serviceAccountName"] = spec["serviceAccount"] = "gpushare-agent"',
        'del spec["automountServiceAccountToken"]',
        'spec["automountServiceAccountToken"] = True',
    ],
    "and nothing else": [
        'spec["volumes"] = [{"name": "x", "hostPath": {"path": "/"}}]',
        'spec["volumes"] = [{"name": "x", "secret": {"secretName": "x"}}]',
        'spec["initContainers"] = [dict(c, name="init")]',
        'spec["resourceClaims"] = [{"name": "x", "resourceClaimName": "x"}]',
        'spec["securityContext"] = {"seLinuxOptions": {"type": "spc_t"}}',
    ],
    "have no rights": [
        'del c["securityContext"]',
        'security["privileged"] = True; del security["allowPrivilegeEscalation"]',
        'security["allowPrivilegeEscalation"] = True',
        'security["runAsNonRoot"] = False',
        'security["runAsUser"] = 0',
        'security["seccompProfile"]["type"] = "Unconfined"',
        'security["capabilities"]["add"] = ["NET_RAW"]',
        'security["seLinuxOptions"] = {"type": "spc_t"}',
        'spec["containers"].append(dict(c, name="second", securityContext={}))',
    ],
    "and do nothing": [
        'c["env"] = [{"name": "X", "value": "y"}]',
        'c["envFrom"] = [{"secretRef": {"name": "x"}}]',
        'c["ports"] = [{"containerPort": 1, "hostPort": 1}]',
        'c["livenessProbe"] = {"httpGet": {"host": "10.0.0.1", "port": 1}}',
        'c["readinessProbe"] = {"exec": {"command": ["x"]}}',
        'c["startupProbe"] = {"exec": {"command": ["x"]}}',
        'c["lifecycle"] = {"postStart": {"exec": {"command": ["x"]}}}',
        'for side in c["resources"].values(): side["gpushare/share-gpu"] = "1"',
        'for side in c["resources"].values(): '
        'side["gpushare/spot-gpu"] = side.pop("nvidia.com/gpu")',
    ],
}

PODS_ALLOWED = [
    "pass",
    'spec["tolerations"] = [{"key": "k", "operator": "Exists"}]',
    'spec["nodeSelector"] = {"a": "b"}',
    'spec["runtimeClassName"] = "gpushare"',
    'spec["priorityClassName"] = "system-cluster-critical"',
    'spec["priorityClassName"] = "gpushare-data"',
    'keys["gpushare.k8s.io/partition"] = "gold"',
    'c["imagePullPolicy"] = "Always"',
    'spec["containers"].append(dict(c, name="card-1"))',
]


def changed(shadow, change):
    p = {"metadata": {"name": "stolen", "annotations": dict(shadow["metadata"]["annotations"])},
         "spec": copy.deepcopy(shadow["spec"])}
    # what the server filled in by other members
    for key in ("priority", "preemptionPolicy", "tolerations"):
        p["spec"].pop(key, None)
    c = p["spec"]["containers"][0]
    exec(change, {"p": p, "keys": p["metadata"]["annotations"], "spec": p["spec"], "c": c,
                  "security": c["securityContext"]})
    return p


def test_token_pods():
    shadow = shadow_of("lasting")
    where = PODS % SYSTEM + "?dryRun=All"
    for change in PODS_ALLOWED:
        api.well("POST", where, changed(shadow, change), user=CONTROLLER)
    for says, changes in PODS_REFUSED.items():
        for change in changes:
            api.refused(says, "POST", where, changed(shadow, change), user=CONTROLLER)
    # others are none of its business
    api.well("POST", where, changed(shadow, 'del p["metadata"]["annotations"]; '
                                    'spec["hostPID"] = True'))
    delete("lasting")


def test_token_changes():
    create(pod("agent"), SYSTEM)
    path = PODS % SYSTEM + "/agent"
    added = merge(path + "/ephemeralcontainers", {"spec": {"ephemeralContainers": [
        {"name": "x", "image": "x"}]}}, user=CONTROLLER)
    labelled = merge(path, label("a", "b"), user=CONTROLLER)
    api.refused("shadow pods alone", "DELETE", path, {}, user=CONTROLLER)
    for args, more in (added, labelled):
        api.refused("cannot patch resource", *args, **more)
    # and not with more rights than it has
    api.well("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/rolebindings" % SYSTEM, {
        "metadata": {"name": "more"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User",
                      "name": CONTROLLER}]})
    end = time.monotonic() + 20
    while "cannot patch" in api.ask(*labelled[0], **labelled[1])[1].get("message", ""):
        need(time.monotonic() < end, "the rights do not come")
        time.sleep(0.2)
    for args, more in (added, labelled):
        api.refused("changes no pod", *args, **more)
    api.well("DELETE", "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/rolebindings/more" %
             SYSTEM)
    delete("agent", SYSTEM)


def test_token_own():
    token = {"type": "kubernetes.io/service-account-token", "metadata": {
        "annotations": {"kubernetes.io/service-account.name": "gpushare-agent"}}}
    for name in ("other", "gpushare-controller-tls"):
        token["metadata"]["name"] = name
        api.refused("writes one Secret", "POST", "/api/v1/namespaces/%s/secrets" % SYSTEM, token,
                    user=CONTROLLER)
    api.refused("writes one Lease", "POST",
                "/apis/coordination.k8s.io/v1/namespaces/%s/leases" % SYSTEM,
                {"metadata": {"name": "other"}, "spec": {}}, user=CONTROLLER)


WEBHOOK_REFUSED = [
    'w["clientConfig"]["url"] = "https://x.example/"',
    'w["clientConfig"] = {"service": {"namespace": "x", "name": "y"}}',
    'w["rules"][0]["resources"] = ["*"]',
    'w["rules"].append({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], '
    '"resources": ["*/*"]})',
    'del w["matchConditions"]',
    'w["matchConditions"][0]["expression"] = "true"',
    'w["objectSelector"] = {"matchLabels": {"a": "b"}}',
    'c["webhooks"][1]["namespaceSelector"] = {}',
    'w["failurePolicy"] = "Ignore"',
    'w["timeoutSeconds"] = 1',
    'w["matchPolicy"] = "Exact"',
    'w["reinvocationPolicy"] = "Never"',
    'w["sideEffects"] = "NoneOnDryRun"',
    'w["name"] = "other.gpushare.k8s.io"',
    'c["webhooks"].append(dict(w, name="other.gpushare.k8s.io"))',
    'del c["webhooks"][1]',
    'c["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Namespace", "name": "x", '
    '"uid": "y"}]',
]


def test_token_webhook():
    before = api.well("GET", WEBHOOK)
    for change in WEBHOOK_REFUSED:
        c = copy.deepcopy(before)
        exec(change, {"c": c, "w": c["webhooks"][0]})
        args, more = merge(WEBHOOK, c, user=CONTROLLER)
        api.refused("writes its authorities", *args, **more)
    need(api.well("GET", WEBHOOK) == before)
    # what it is there for
    c = copy.deepcopy(before)
    for w in c["webhooks"]:
        bundle = base64.b64decode(w["clientConfig"]["caBundle"])
        w["clientConfig"]["caBundle"] = base64.b64encode(bundle + bundle).decode()
    args, more = merge(WEBHOOK + "?dryRun=All", c, user=CONTROLLER)
    api.well(*args, **more)


def test_token_policies_are_typed():
    """The API server finds nothing odd in any expression of ours."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    policies = [p for p in api.well("GET", path)["items"]
                if p["metadata"]["name"].startswith("gpushare-")]
    need(len(policies) == 5, policies)
    for policy in policies:
        name, end = policy["metadata"]["name"], time.monotonic() + 60
        while policy.get("status", {}).get("observedGeneration") != policy["metadata"][
                "generation"]:
            need(time.monotonic() < end, name, "is not checked")
            time.sleep(0.2)
            policy = api.well("GET", path + "/" + name)
        need(not policy["status"].get("typeChecking"), name, policy["status"])


def token_of(account):
    path = "/api/v1/namespaces/default/serviceaccounts"
    api.well("POST", path, {"metadata": {"name": account}})
    return api.well("POST", path + "/%s/token" % account, {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"][
            "token"]


def metrics(token):
    """(status, text): what the controller answers, by the authority that API servers trust."""
    bundle = api.well("GET", WEBHOOK)["webhooks"][0]["clientConfig"]["caBundle"]
    context = ssl.create_default_context(cadata=base64.b64decode(bundle).decode())
    host = http.client.HTTPSConnection("gpushare-controller.%s.svc" % SYSTEM, 8443, timeout=60,
                                       context=context)
    host.request("GET", "/metrics", None, {"Authorization": "Bearer " + token} if token else {})
    response = host.getresponse()
    return response.status, response.read().decode()


def test_metrics_are_for_readers():
    tenant, reader = token_of("tenant"), token_of("reader")
    need(metrics(None)[0] == 401)
    need(metrics("x" + tenant)[0] == 401)
    need(metrics(tenant)[0] == 403)
    need(metrics(reader)[0] == 403)
    path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    api.well("POST", path, {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "gpushare-metrics-reader"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "reader"}]})
    end = time.monotonic() + 60
    while metrics(reader)[0] != 200:
        need(time.monotonic() < end, metrics(reader))
        time.sleep(1)
    need("\ngpushare_controller_leader 1\n" in metrics(reader)[1], metrics(reader))
    need(metrics(tenant)[0] == 403)
    # a token is good for as long as its account is there
    api.well("DELETE", "/api/v1/namespaces/default/serviceaccounts/reader")
    while metrics(reader)[0] != 401:
        need(time.monotonic() < end + 60, metrics(reader))
        time.sleep(1)
    api.well("DELETE", path + "/reader")
    api.well("DELETE", "/api/v1/namespaces/default/serviceaccounts/tenant")


def test_agent_lists_its_own_node():
    """With docs/controller.md's authorization.yaml."""
    of = "fieldSelector=spec.nodeName%3D"
    for path in ("/api/v1/pods?", "/api/v1/pods?watch=1&timeoutSeconds=1&"):
        api.well("GET", path + of + "n1", user=AGENT, node="n1")
        api.well("GET", path + of + "n1,status.phase%3DRunning", user=AGENT, node="n1")
        api.well("GET", path)
        for query, node in (("", "n1"), (of + "n2", "n1"), (of + "n1", None), ("", None),
                            ("fieldSelector=spec.nodeName!%3Dn2", "n1"),
                            ("fieldSelector=status.phase%3DRunning", "n1"),
                            ("fieldSelector=spec.nodeName%3D", None)):
            api.refused("Internal Server Error", "GET", path + query, user=AGENT, node=node)
    # what else it may do is as before
    api.well("POST", PODS.replace("pods", "events") % "default", {
        "metadata": {"generateName": "x"}, "involvedObject": {"namespace": "default"}}, user=AGENT)
    create(pod("of-n2", nodeName="n2"))
    api.refused("pods of its own node alone", "DELETE", PODS % "default" + "/of-n2", {},
                user=AGENT, node="n1")
    delete("of-n2")


def test_away():
    """No controller runs: what has nothing to do with it goes on, and nobody gets past it."""
    asked = 'failed calling webhook "pods.gpushare.k8s.io"'
    create(pod("plain"))
    create(pod("other", "nvidia.com/gpu"))
    # made while one ran
    ours = PODS % "default" + "/before"
    for patch in (label("a", "b"), {"metadata": {"annotations": {"a.example/b": "c"}}},
                  {"metadata": {"finalizers": ["a.example/b"]}}, {"metadata": {"finalizers": []}}):
        args, more = merge(ours, patch)
        api.well(*args, **more)
    args, more = merge(ours + "/status", {"status": {"phase": "Running"}})
    api.well(*args, **more)
    args, more = merge(PODS % "default" + "/plain", {"spec": {"activeDeadlineSeconds": 100}})
    api.well(*args, **more)

    for p in (pod("new", annotations={"share": "true"}), pod("new", "gpushare/spot-gpu"),
              pod("new", priorityClassName="gpushare-data")):
        api.refused(asked, "POST", PODS % "default", p)
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "x", "uid": "y"}
    added = {"spec": {"ephemeralContainers": [{"name": "x", "image": "x"}]}}
    annotate = [{"metadata": {"annotations": {PREFIX + "lend": "true"}}}]
    for path, patches in ((PODS % "default" + "/plain", annotate), (ours, annotate + [
            {"metadata": {"annotations": {PREFIX + "share": "false"}}},
            {"metadata": {"annotations": {PREFIX + "share": None}}},
            {"metadata": {"ownerReferences": [owner]}},
            {"spec": {"activeDeadlineSeconds": 100}}])):
        for patch in patches:
            args, more = merge(path, patch)
            api.refused(asked, *args, **more)
    args, more = merge(ours + "/ephemeralcontainers", added)
    api.refused(asked, *args, **more)
    api.refused(asked, "POST", ours + "/binding", {
        "metadata": {"name": "before", "annotations": {PREFIX + "lend": "true"}},
        "target": {"kind": "Node", "name": "x"}})
    for name in ("before", "plain", "other"):
        delete(name)


if __name__ == "__main__":
    api = Api()
    tap.main(tap.named(globals()))
