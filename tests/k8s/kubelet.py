#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A kubelet as far as device plugins see it: Python's gRPC and protobuf against ours.

    kubelet.py DIR

It listens at DIR/kubelet.sock (Registration) and DIR/pods.sock (PodResources). What it is to do are
JSON objects on stdin, one a line; what it sees and gets are JSON objects on stdout:

    {"call": "Allocate", "request": {...}}    a call of the plugin that registered
    {"pods": {...}}                           what List answers from now on
    {"allocatable": {...}}                    what GetAllocatableResources answers
    {"refuse": "text"}                        Register fails with that; "" ends it
    {"cancel": "text"}                        so does what PodResources is asked, as a call of ours
                                              that it gave up
    {"leave": true}                           the stream and the connection end
"""
import json
import sys
import threading

import grpc
from google.protobuf import json_format

import protos

out_lock = threading.Lock()


def tell(**what):
    with out_lock:
        print(json.dumps(what, sort_keys=True), flush=True)


def as_dict(message):
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


class Kubelet:
    def __init__(self, directory):
        self.directory = directory
        self.plugin_pb, self.pods_pb = protos.load(directory)
        self.answers = {"pods": {}, "allocatable": {}}
        self.refusal = ""
        self.cancelled = ""
        self.channel = None

    def register(self, request, context):
        tell(registered=as_dict(request))
        # Go's server refuses any name that has a slash, or one that stands for it
        called = context._rpc_event.call_details.host
        if called != b"localhost":
            context.abort(grpc.StatusCode.INTERNAL, f"nobody is called {called}")
        if self.refusal:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, self.refusal)
        threading.Thread(target=self.watch, args=(request.endpoint,), daemon=True).start()
        return self.plugin_pb.Empty()

    def watch(self, endpoint):
        self.channel = grpc.insecure_channel(f"unix:{self.directory}/{endpoint}")
        call = self.channel.unary_stream(
            "/v1beta1.DevicePlugin/ListAndWatch",
            request_serializer=self.plugin_pb.Empty.SerializeToString,
            response_deserializer=self.plugin_pb.ListAndWatchResponse.FromString)
        try:
            for answer in call(self.plugin_pb.Empty()):
                tell(devices=as_dict(answer).get("devices", []))
            tell(ended="OK")
        except grpc.RpcError as error:
            tell(ended=error.code().name)

    def answer(self, key, kind):
        def answer(_, context):
            if self.cancelled:
                context.abort(grpc.StatusCode.CANCELLED, self.cancelled)
            return json_format.ParseDict(self.answers[key], kind())
        return answer

    def call(self, method, request):
        for name, path, request_type, response_type in protos.methods(
                self.plugin_pb, "DevicePlugin"):
            if name == method:
                break
        call = self.channel.unary_unary(
            path, request_serializer=request_type.SerializeToString,
            response_deserializer=response_type.FromString)
        try:
            tell(answer=as_dict(call(json_format.ParseDict(request, request_type()), timeout=20)))
        except grpc.RpcError as error:
            tell(error=error.code().name, message=error.details())

    def run(self):
        servers = [
            protos.serve(f"{self.directory}/kubelet.sock", self.plugin_pb, "Registration",
                         {"Register": self.register}),
            protos.serve(f"{self.directory}/pods.sock", self.pods_pb, "PodResourcesLister", {
                "List": self.answer("pods", self.pods_pb.ListPodResourcesResponse),
                "GetAllocatableResources":
                    self.answer("allocatable", self.pods_pb.AllocatableResourcesResponse)})]
        tell(ready=True)
        for line in sys.stdin:
            order = json.loads(line)
            if "call" in order:
                self.call(order["call"], order["request"])
            elif "refuse" in order:
                self.refusal = order["refuse"]
            elif "cancel" in order:
                self.cancelled = order["cancel"]
            elif "leave" in order:
                self.channel.close()
            else:
                self.answers.update(order)
        for server in servers:
            server.stop(None)


if __name__ == "__main__":
    Kubelet(sys.argv[1]).run()
