#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A small client of the Container Runtime Interface, for machines without crictl.

It takes the subset of crictl's command line that the tests use, with crictl's JSON files, and does
what the kubelet does: an error is printed as the kubelet would show it in the pod's events.
"""
import argparse
import importlib
import json
import sys
import time


def rpc(channel, pb, service, method):
    """A call by name; the messages' types come from cri.proto."""
    desc = pb.DESCRIPTOR.services_by_name[service].methods_by_name[method]
    request = getattr(pb, desc.input_type.name)
    response = getattr(pb, desc.output_type.name)
    call = channel.unary_unary(f"/runtime.v1.{service}/{method}",
                               request_serializer=request.SerializeToString,
                               response_deserializer=response.FromString)
    return lambda deadline=60, **fields: call(request(**fields), timeout=deadline)


class Client:
    def __init__(self, args):
        # Made from cri.proto by the caller, see cri.sh.
        sys.path.insert(0, args.proto_dir)
        import grpc
        self.grpc = grpc
        self.pb = importlib.import_module("cri_pb2")
        self.json_format = importlib.import_module("google.protobuf.json_format")
        # Go's HTTP/2 server refuses the name that gRPC's C core makes of a socket's path.
        self.channel = grpc.insecure_channel(
            args.runtime_endpoint, options=[("grpc.default_authority", "localhost")])

    def __getattr__(self, method):
        service = "ImageService" if method == "ListImages" else "RuntimeService"
        return rpc(self.channel, self.pb, service, method)

    def load(self, path, kind):
        with open(path, encoding="utf-8") as f:
            return self.json_format.ParseDict(json.load(f), getattr(self.pb, kind)())

    def as_dict(self, message):
        out = self.json_format.MessageToDict(message, including_default_value_fields=True)
        # What a runtime says verbosely is JSON inside JSON.
        info = out.get("info", {})
        for key, value in info.items():
            try:
                info[key] = json.loads(value)
            except ValueError:
                pass
        return info | {"status": out.get("status")}


def cmd_runp(client, args):
    config = client.load(args.pod, "PodSandboxConfig")
    print(client.RunPodSandbox(config=config, runtime_handler=args.runtime).pod_sandbox_id)


def cmd_create(client, args):
    print(client.CreateContainer(
        pod_sandbox_id=args.pod_id, config=client.load(args.container, "ContainerConfig"),
        sandbox_config=client.load(args.pod, "PodSandboxConfig")).container_id)


def cmd_start(client, args):
    client.StartContainer(container_id=args.id)


def cmd_stop(client, args):
    client.StopContainer(container_id=args.id, timeout=args.timeout)


def cmd_rm(client, args):
    client.RemoveContainer(container_id=args.id)


def cmd_stopp(client, args):
    client.StopPodSandbox(pod_sandbox_id=args.id)


def cmd_pods(client, _args):
    for pod in client.ListPodSandbox().items:
        print(pod.id)


def cmd_ps(client, _args):
    for container in client.ListContainers().containers:
        if container.state == client.pb.CONTAINER_RUNNING:
            print(container.id)


def cmd_rmp(client, args):
    if args.force:
        client.StopPodSandbox(pod_sandbox_id=args.id)
    client.RemovePodSandbox(pod_sandbox_id=args.id)


def cmd_exec(client, args):
    out = client.ExecSync(container_id=args.id, cmd=args.cmd, timeout=30)
    sys.stdout.buffer.write(out.stdout)
    sys.stdout.flush()
    sys.stderr.buffer.write(out.stderr)
    return out.exit_code


def cmd_update(client, args):
    client.UpdateContainerResources(container_id=args.id, linux=client.pb.LinuxContainerResources(
        cpu_period=args.cpu_period, cpu_quota=args.cpu_quota))


def cmd_inspect(client, args):
    out = client.as_dict(client.ContainerStatus(container_id=args.id, verbose=True))
    print(json.dumps(out, indent=2))


def cmd_inspectp(client, args):
    out = client.as_dict(client.PodSandboxStatus(pod_sandbox_id=args.id, verbose=True))
    print(json.dumps(out, indent=2))


def cmd_logs(client, args):
    """The log file that the runtime writes: "<time> <stdout|stderr> <F|P> <text>" a line."""
    path = client.ContainerStatus(container_id=args.id).status.log_path
    with open(path, encoding="utf-8", errors="replace") as f:
        for line in f:
            _, stream, tag, text = line.rstrip("\n").split(" ", 3)
            end = "\n" if tag == "F" else ""
            print(text, end=end, file=sys.stdout if stream == "stdout" else sys.stderr)


def cmd_images(client, _args):
    for image in client.ListImages().images:
        for tag in image.repo_tags:
            print(tag)


def cmd_version(client, _args):
    out = client.Version(version="v1")
    print(out.runtime_name, out.runtime_version, out.runtime_api_version)


def cmd_wait_ready(client, args):
    end = time.monotonic() + args.timeout
    while True:
        try:
            conditions = client.Status(deadline=5).status.conditions
            if any(c.type == "RuntimeReady" and c.status for c in conditions):
                return 0
        except client.grpc.RpcError as e:
            if time.monotonic() >= end:
                raise
            # A channel that was refused once backs off for longer than containerd starts.
            if e.code() != client.grpc.StatusCode.UNAVAILABLE:
                raise
        if time.monotonic() >= end:
            print("the runtime is not ready", file=sys.stderr)
            return 1
        time.sleep(0.1)


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runtime-endpoint", default="unix:///run/containerd/containerd.sock")
    parser.add_argument("--proto-dir", required=True, help="where cri_pb2.py is")
    commands = parser.add_subparsers(dest="command", required=True)

    def add(name, handler, *positional):
        sub = commands.add_parser(name)
        sub.set_defaults(handler=handler)
        for arg in positional:
            sub.add_argument(arg)
        return sub

    add("runp", cmd_runp, "pod").add_argument("--runtime", default="")
    add("create", cmd_create, "pod_id", "container", "pod")
    add("start", cmd_start, "id")
    add("stop", cmd_stop, "id").add_argument("--timeout", type=int, default=0)
    add("rm", cmd_rm, "id")
    add("stopp", cmd_stopp, "id")
    add("rmp", cmd_rmp, "id").add_argument("--force", action="store_true")
    add("pods", cmd_pods).add_argument("-q", action="store_true", required=True)
    add("ps", cmd_ps).add_argument("-q", action="store_true", required=True)
    sub = add("exec", cmd_exec, "id")
    sub.add_argument("cmd", nargs=argparse.REMAINDER)
    sub = add("update", cmd_update, "id")
    sub.add_argument("--cpu-period", type=int, default=100000)
    sub.add_argument("--cpu-quota", type=int, required=True)
    add("inspect", cmd_inspect, "id")
    add("inspectp", cmd_inspectp, "id")
    add("logs", cmd_logs, "id")
    add("images", cmd_images)
    add("version", cmd_version)
    add("wait-ready", cmd_wait_ready).add_argument("--timeout", type=int, default=30)
    return parser.parse_args(argv)


def main():
    args = parse(sys.argv[1:])
    client = Client(args)
    try:
        return args.handler(client, args)
    except client.grpc.RpcError as e:
        # The kubelet puts nothing but this text behind "Error: ".
        print(e.details(), file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
