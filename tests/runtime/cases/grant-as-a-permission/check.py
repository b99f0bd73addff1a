import json


def check(t):
    path = "/run/golden/lib/grants/0123456789abcdef0123456789abcdef.bound"
    t.need(json.load(open(path)) == {"v": 1, "pod_uid": "3c0ffee0-0000-4000-8000-000000000001", "container": "dind"},
           open(path).read())
