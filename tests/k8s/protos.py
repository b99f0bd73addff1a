# SPDX-License-Identifier: Apache-2.0
"""The kubelet's protocols in Python: messages made from our proto files, and servers of them."""
import concurrent.futures
import importlib
import os
import subprocess
import sys

import grpc

PROTOS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../agent/proto")


def make(directory):
    """Writes the messages' classes there."""
    subprocess.run(["protoc", f"--proto_path={PROTOS}", f"--python_out={directory}",
                    "deviceplugin.proto", "podresources.proto"], check=True)


def load(directory):
    """The messages' classes, of device plugins and of PodResources; made if they are not there."""
    if not os.path.exists(f"{directory}/podresources_pb2.py"):
        make(directory)
    sys.path.insert(0, directory)
    return (importlib.import_module("deviceplugin_pb2"),
            importlib.import_module("podresources_pb2"))


def methods(pb, service):
    """Each method of a service with its name on the wire and its types."""
    descriptor = pb.DESCRIPTOR.services_by_name[service]
    for method in descriptor.methods:
        yield (method.name, f"/{descriptor.full_name}/{method.name}",
               getattr(pb, method.input_type.name), getattr(pb, method.output_type.name))


def serve(socket, pb, service, functions, streams=()):
    """Serves these functions of a service at a unix socket; those named in streams give many."""
    handlers = {}
    for name, _, request, response in methods(pb, service):
        if name in functions:
            handler = (grpc.unary_stream_rpc_method_handler if name in streams else
                       grpc.unary_unary_rpc_method_handler)
            handlers[name] = handler(functions[name], request_deserializer=request.FromString,
                                     response_serializer=response.SerializeToString)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
    full_name = pb.DESCRIPTOR.services_by_name[service].full_name
    server.add_generic_rpc_handlers((
        grpc.method_handlers_generic_handler(full_name, handlers),))
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    return server
