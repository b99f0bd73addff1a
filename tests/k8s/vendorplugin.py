#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A vendor's device plugin, in the place of NVIDIA's.

    vendorplugin.py WORK-DIR RESOURCE VARIABLE SHARED-NODE[,NODE...] ID=NODE[,NODE...] ...

It serves RESOURCE to the kubelet of /var/lib/kubelet, and registers again whenever that one is
another. A container gets the nodes of its devices, those that all cards share, and their ids in
the environment VARIABLE. What happens is a JSON object a line on stdout.
"""
import json
import os
import sys
import time

import grpc
import protos

PLUGINS = "/var/lib/kubelet/device-plugins"


def tell(**what):
    print(json.dumps(what, sort_keys=True), flush=True)


class Plugin:
    def __init__(self, work, resource, variable, shared, devices):
        self.pb, _ = protos.load(work)
        self.resource = resource
        self.variable = variable
        self.shared = shared
        self.devices = devices  # id: nodes
        self.socket = "vendor-" + resource.replace("/", "-") + ".sock"

    def options(self, request, context):
        return self.pb.DevicePluginOptions()

    def watch(self, request, context):
        yield self.pb.ListAndWatchResponse(devices=[
            self.pb.Device(ID=name, health="Healthy") for name in sorted(self.devices)])
        while context.is_active():
            time.sleep(0.5)

    def allocate(self, request, context):
        answer = self.pb.AllocateResponse()
        for asked in request.container_requests:
            names = list(asked.devices_ids)
            tell(allocated=names)
            got = answer.container_responses.add()
            got.envs[self.variable] = ",".join(names)
            for node in [n for name in names for n in self.devices[name]] + self.shared:
                got.devices.add(container_path=node, host_path=node, permissions="rw")
        return answer

    def register(self):
        channel = grpc.insecure_channel(f"unix:{PLUGINS}/kubelet.sock")
        _, path, request, response = next(protos.methods(self.pb, "Registration"))
        call = channel.unary_unary(path, request_serializer=request.SerializeToString,
                                   response_deserializer=response.FromString)
        try:
            call(request(version="v1beta1", endpoint=self.socket, resource_name=self.resource),
                 timeout=10)
            tell(registered=self.resource)
            return True
        except grpc.RpcError as error:
            tell(error=error.details())
            return False
        finally:
            channel.close()

    def serve(self):
        """Until the kubelet, which empties the folder when it starts, has taken our socket."""
        path = f"{PLUGINS}/{self.socket}"
        if os.path.exists(path):
            os.unlink(path)
        server = protos.serve(path, self.pb, "DevicePlugin", {
            "GetDevicePluginOptions": self.options, "ListAndWatch": self.watch,
            "Allocate": self.allocate}, ["ListAndWatch"])
        while os.path.exists(path) and not self.register():
            time.sleep(0.5)
        while os.path.exists(path):
            time.sleep(0.2)
        server.stop(None)

    def run(self):
        while True:
            if os.path.exists(f"{PLUGINS}/kubelet.sock"):
                self.serve()
            time.sleep(0.2)


def main():
    work, resource, variable, shared, *devices = sys.argv[1:]
    parsed = dict(device.split("=", 1) for device in devices)
    Plugin(work, resource, variable, shared.split(","),
           {name: nodes.split(",") for name, nodes in parsed.items()}).run()


main()
