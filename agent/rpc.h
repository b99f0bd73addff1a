/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC over unix sockets, for the kubelet's protocols: gRPC's C core with one thread of ours, which
 * alone speaks to it. That thread knows nothing of the agent: what the loop wants done there it
 * gives as a job, what the thread wants to say to the loop waits in a mailbox. So neither waits for
 * the other, and no state is shared.
 */
#ifndef GPUSHARE_AGENT_RPC_H
#define GPUSHARE_AGENT_RPC_H

#include <stdbool.h>
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

#include "common/buf.h"
#include "common/err.h"

struct rpc;
struct rpc_server;

/*
 * Starts gRPC and the thread, with all signals blocked there and in gRPC's own threads. @wake is
 * called from the thread, whenever there is something for rpc_dispatch() to do: it may call
 * uv_async_send() and little else. -EAGAIN: no thread to be had.
 */
int rpc_new(void (*wake)(void *arg), void *arg, struct rpc **ret, struct gs_err *err);

/*
 * The last call of all: ends every call and server, waits for the thread, and ends gRPC. Those who
 * still wait for an answer are told -ECANCELED from within. -ETIMEDOUT: the thread did not end in
 * time (5 s); everything of it is left as it is, and the process had better end. NULL is none.
 */
int rpc_free(struct rpc *rpc);

/* In the loop's thread, after @wake: calls what was posted, in order. */
void rpc_dispatch(struct rpc *rpc);

/*
 * From any thread: @run is called in the thread of gRPC, or @drop (may be NULL) by rpc_free()
 * where that came first; in the order of the jobs.
 */
void rpc_run(struct rpc *rpc, void (*run)(void *arg), void (*drop)(void *arg), void *arg);

/*
 * From the thread of gRPC: @run is called by rpc_dispatch(), or @drop (may be NULL) by rpc_free()
 * where that came first.
 */
void rpc_post(struct rpc *rpc, void (*run)(void *arg), void (*drop)(void *arg), void *arg);

/* Appends the bytes of a message, packed. */
void rpc_append(struct gs_buf *out, const ProtobufCMessage *message);

/* The answer of a call: a message of the type asked for, or NULL and an error. */
typedef void rpc_done(int code, const ProtobufCMessage *answer, const struct gs_err *err,
		      void *arg);

/*
 * Calls @method ("/package.Service/Method") with one message, over a connection of its own to the
 * unix socket @socket; @request is packed before this returns. @done is called by rpc_dispatch(),
 * once: 0, or -errno of the failure: -ECONNREFUSED: nobody is there; -ETIMEDOUT: no answer
 * within @timeout_ms; -EMSGSIZE: one of more than 4 MiB; -EBADMSG: none of the type @type;
 * -ECANCELED: by rpc_free(), and for no other reason; else of the gRPC status that the other side
 * gave, with its message.
 */
void rpc_call(struct rpc *rpc, const char *socket, const char *method,
	      const ProtobufCMessage *request, const ProtobufCMessageDescriptor *type,
	      unsigned int timeout_ms, rpc_done *done, void *arg);

/* A method that a server has. */
struct rpc_method {
	const char *name; /* "/package.Service/Method" */
	const ProtobufCMessageDescriptor *request;
	/*
	 * In the thread of gRPC: appends the answer's bytes. A failure becomes a gRPC status with
	 * the error's message. NULL: the answer is a stream of what rpc_server_push() gives.
	 */
	int (*answer)(const ProtobufCMessage *request, struct gs_buf *out, void *arg,
		      struct gs_err *err);
};

struct rpc_server_ops {
	const struct rpc_method *methods;
	size_t n;
	/* In the loop (by rpc_dispatch()): it listens, or why it doesn't (-errno). */
	void (*started)(int code, const struct gs_err *err, void *arg);
	/* In the thread of gRPC: a stream began or ended; there are @n now. May be NULL. */
	void (*streams)(size_t n, void *arg);
	/* In the loop, at the very end (in rpc_free(), if it is not told before). May be NULL. */
	void (*ended)(void *arg);
	void *arg;
};

/*
 * Listens at the unix socket @socket (mode 0600), in the place of whatever has that name; the name
 * must leave room for a few characters more. @ops is copied, but not what it points to. Requests of
 * more than 256 KiB, and more than 64 calls at a time are refused.
 */
struct rpc_server *rpc_server_new(struct rpc *rpc, const char *socket,
				  const struct rpc_server_ops *ops);

/* In the thread of gRPC: gives every stream these bytes, which each new one will begin with. */
void rpc_server_push(struct rpc_server *server, const struct gs_buf *bytes);

/*
 * Ends its calls and removes the socket; it is freed when that is done, and then @ended is called.
 * After rpc_free() there is none any more to be freed. NULL is none.
 */
void rpc_server_free(struct rpc_server *server);

#endif
