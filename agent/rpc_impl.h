/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of agent/rpc*.c share. All of it belongs to the thread of gRPC. */
#ifndef GPUSHARE_AGENT_RPC_IMPL_H
#define GPUSHARE_AGENT_RPC_IMPL_H

#include <pthread.h>

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/status.h>

#include "agent/rpc.h"

/* What an answer may have; the kubelet's own bound for PodResources is higher than any node. */
#define RPC_MAX_ANSWER (4 << 20)
/* What a request may have: a list of a node's devices, many times over. */
#define RPC_MAX_REQUEST (256 << 10)

/* Where an event of the completion queue goes; part of what waits for it. */
struct rpc_event {
	void (*done)(struct rpc_event *event, bool ok);
};

struct rpc_item {
	struct rpc_item *next;
	void (*run)(void *arg);
	void (*drop)(void *arg);
	void *arg;
};

struct rpc_list {
	struct rpc_item *first, **last;
};

struct rpc_call_out;

struct rpc {
	pthread_t thread;
	void (*wake)(void *arg);
	void *wake_arg;
	grpc_completion_queue *queue;
	/* Never started; an empty batch of it is how another thread wakes ours. */
	grpc_channel *lame;
	grpc_call *kick;
	struct rpc_event kicked;

	pthread_mutex_t lock; /* of what follows until the blank line */
	struct rpc_list jobs, mail;
	bool kicking; /* an empty batch is on its way */
	bool ended; /* the thread takes no more jobs */

	struct rpc_server *servers;
	struct rpc_call_out *calls;
	bool stopping;
};

/* The bytes of a packed message as gRPC wants them; the caller destroys. */
grpc_byte_buffer *rpc_bytes(const struct gs_buf *bytes);

/* The message in @buffer (NULL is none), which the caller frees; NULL: it has no such type. */
ProtobufCMessage *rpc_unpack(grpc_byte_buffer *buffer, const ProtobufCMessageDescriptor *type);

/* Ends all calls to others, all servers; nothing more may begin. */
void rpc_calls_cancel(struct rpc *rpc);
void rpc_servers_end(struct rpc *rpc);

#endif
