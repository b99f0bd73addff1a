// SPDX-License-Identifier: Apache-2.0
/* A server at a unix socket: methods that answer at once, and streams of what is pushed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/rpc_impl.h"
#include "common/cleanup.h"
#include "common/xalloc.h"

#define MAX_CALLS 64

struct call {
	/* One for each batch that may be on its way. */
	struct rpc_event arrived, asked, sent, closed;
	struct rpc_server *server;
	struct call *next, **at; /* once it has arrived */
	grpc_call *call;
	grpc_call_details details;
	grpc_metadata_array metadata;
	grpc_byte_buffer *request, *answer;
	const struct rpc_method *method;
	int cancelled;
	unsigned int pending; /* batches */
	bool stream; /* it gets what is pushed */
	bool over; /* closed: nothing more is sent */
	bool sending;
	unsigned long pushed; /* the last push that it got */
};

struct rpc_server {
	struct rpc *rpc;
	struct rpc_server *next;
	char *socket;
	struct rpc_server_ops ops;
	grpc_server *server; /* NULL: does not listen */
	struct call *calls;
	struct call *waiting; /* for the next to arrive */
	size_t n, streams;
	struct rpc_event shut;
	bool ending, is_shut;
	struct gs_buf bytes;
	unsigned long pushes;
	dev_t dev; /* of the socket, once it has its name */
	ino_t ino;
};

/* Of a start, for the loop. */
struct start {
	struct rpc_server_ops ops;
	int code;
	struct gs_err err;
};

#define call_of(event, member) ((struct call *)((char *)(event)-offsetof(struct call, member)))

static void server_gone(struct rpc_server *server)
{
	struct rpc *rpc = server->rpc;
	struct rpc_server **at = &rpc->servers;

	while (*at != server)
		at = &(*at)->next;
	*at = server->next;
	if (server->server)
		grpc_server_destroy(server->server);
	if (server->ops.ended)
		rpc_post(rpc, server->ops.ended, server->ops.ended, server->ops.arg);
	gs_buf_free(&server->bytes);
	free(server->socket);
	free(server);
}

static void server_look(struct rpc_server *server)
{
	if (server->ending && (!server->server || server->is_shut) && !server->calls &&
	    !server->waiting)
		server_gone(server);
}

static void streams_changed(struct rpc_server *server, int by)
{
	server->streams += by;
	if (server->ops.streams)
		server->ops.streams(server->streams, server->ops.arg);
}

static void call_look(struct call *call)
{
	struct rpc_server *server = call->server;

	if (call->pending > 0 || !call->over)
		return;
	*call->at = call->next;
	if (call->next)
		call->next->at = call->at;
	server->n--;
	if (call->stream)
		streams_changed(server, -1);
	grpc_byte_buffer_destroy(call->request);
	grpc_byte_buffer_destroy(call->answer);
	grpc_metadata_array_destroy(&call->metadata);
	grpc_call_details_destroy(&call->details);
	grpc_call_unref(call->call);
	free(call);
	server_look(server);
}

static void batch(struct call *call, const grpc_op *ops, size_t n, struct rpc_event *event)
{
	/* Fails for what the callers here never do: one operation twice, or after the last. */
	if (grpc_call_start_batch(call->call, ops, n, event, NULL) == GRPC_CALL_OK)
		call->pending++;
}

static void call_fail(struct call *call, bool first, grpc_status_code status, const char *message)
{
	grpc_slice details = grpc_slice_from_copied_string(message);
	grpc_op ops[2] = { 0 };

	ops[0].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
	ops[0].data.send_status_from_server.status = status;
	ops[0].data.send_status_from_server.status_details = &details;
	ops[1].op = GRPC_OP_SEND_INITIAL_METADATA;
	batch(call, ops, first ? 2 : 1, &call->sent);
	grpc_slice_unref(details);
}

static void call_answer(struct call *call, const struct gs_buf *bytes)
{
	grpc_op ops[2] = { 0 };

	call->answer = rpc_bytes(bytes);
	ops[0].op = GRPC_OP_SEND_MESSAGE;
	ops[0].data.send_message.send_message = call->answer;
	ops[1].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
	ops[1].data.send_status_from_server.status = GRPC_STATUS_OK;
	batch(call, ops, GS_ARRAY_SIZE(ops), &call->sent);
}

/* Gives a stream what it has not got yet; what came while it was busy is left out. */
static void call_push(struct call *call)
{
	grpc_op op = { 0 };

	if (call->over || call->sending || call->pushed == call->server->pushes)
		return;
	call->pushed = call->server->pushes;
	call->sending = true;
	call->answer = rpc_bytes(&call->server->bytes);
	op.op = GRPC_OP_SEND_MESSAGE;
	op.data.send_message.send_message = call->answer;
	batch(call, &op, 1, &call->sent);
}

static void on_sent(struct rpc_event *event, bool ok)
{
	struct call *call = call_of(event, sent);

	call->pending--;
	if (call->sending) {
		call->sending = false;
		grpc_byte_buffer_destroy(gs_steal(call->answer));
		if (ok)
			call_push(call);
	}
	call_look(call);
}

static void on_closed(struct rpc_event *event, bool ok)
{
	struct call *call = call_of(event, closed);

	(void)ok;
	call->pending--;
	call->over = true;
	call_look(call);
}

static grpc_status_code status_of(int code)
{
	switch (-code) {
	case EINVAL:
		return GRPC_STATUS_INVALID_ARGUMENT;
	case ENOENT:
		return GRPC_STATUS_NOT_FOUND;
	case EBUSY:
		return GRPC_STATUS_FAILED_PRECONDITION;
	case ENOSPC:
	case ENOBUFS:
		return GRPC_STATUS_RESOURCE_EXHAUSTED;
	case EPERM:
	case EACCES:
		return GRPC_STATUS_PERMISSION_DENIED;
	case EAGAIN:
		return GRPC_STATUS_UNAVAILABLE;
	default:
		return GRPC_STATUS_INTERNAL;
	}
}

static void call_serve(struct call *call)
{
	const struct rpc_method *method = call->method;
	cleanup_buf struct gs_buf out = { 0 };
	struct gs_err err = { 0 };
	ProtobufCMessage *request;
	int code;

	request = rpc_unpack(call->request, method->request);
	if (!request) {
		(void)gs_err_set(&err, EINVAL, "the request is no %s", method->request->name);
		call_fail(call, false, GRPC_STATUS_INVALID_ARGUMENT, err.msg);
		return;
	}
	if (!method->answer) {
		call->stream = true;
		streams_changed(call->server, 1);
		call_push(call);
	} else {
		code = method->answer(request, &out, call->server->ops.arg, &err);
		if (code < 0)
			call_fail(call, false, status_of(code), err.msg);
		else
			call_answer(call, &out);
	}
	protobuf_c_message_free_unpacked(request, NULL);
}

static void on_asked(struct rpc_event *event, bool ok)
{
	struct call *call = call_of(event, asked);

	(void)ok; /* no request, then */
	call->pending--;
	if (!call->over)
		call_serve(call);
	call_look(call);
}

static const struct rpc_method *method_find(const struct rpc_server *server, grpc_slice name)
{
	for (size_t i = 0; i < server->ops.n; i++)
		if (grpc_slice_str_cmp(name, server->ops.methods[i].name) == 0)
			return &server->ops.methods[i];
	return NULL;
}

static void call_begin(struct call *call)
{
	grpc_op ops[2] = { 0 };

	/* Always the first: it says when all is over, and that it was cancelled. */
	ops[0].op = GRPC_OP_RECV_CLOSE_ON_SERVER;
	ops[0].data.recv_close_on_server.cancelled = &call->cancelled;
	batch(call, ops, 1, &call->closed);
	call->method = method_find(call->server, call->details.method);
	if (!call->method) {
		call_fail(call, true, GRPC_STATUS_UNIMPLEMENTED, "there is no such method");
		return;
	}
	if (call->server->n > MAX_CALLS) {
		call_fail(call, true, GRPC_STATUS_RESOURCE_EXHAUSTED, "too many calls at a time");
		return;
	}
	ops[0] = (grpc_op){ .op = GRPC_OP_SEND_INITIAL_METADATA };
	ops[1].op = GRPC_OP_RECV_MESSAGE;
	ops[1].data.recv_message.recv_message = &call->request;
	batch(call, ops, GS_ARRAY_SIZE(ops), &call->asked);
}

static void call_await(struct rpc_server *server);

static void on_arrived(struct rpc_event *event, bool ok)
{
	struct call *call = call_of(event, arrived);
	struct rpc_server *server = call->server;

	server->waiting = NULL;
	if (!ok) {
		grpc_metadata_array_destroy(&call->metadata);
		grpc_call_details_destroy(&call->details);
		free(call);
		server_look(server);
		return;
	}
	call->next = server->calls;
	call->at = &server->calls;
	if (call->next)
		call->next->at = &call->next;
	server->calls = call;
	server->n++;
	call_await(server);
	call_begin(call);
}

static void call_await(struct rpc_server *server)
{
	struct call *call = gs_calloc(1, sizeof(*call));

	call->server = server;
	call->arrived.done = on_arrived;
	call->asked.done = on_asked;
	call->sent.done = on_sent;
	call->closed.done = on_closed;
	grpc_call_details_init(&call->details);
	grpc_metadata_array_init(&call->metadata);
	if (grpc_server_request_call(server->server, &call->call, &call->details, &call->metadata,
				     server->rpc->queue, server->rpc->queue,
				     &call->arrived) != GRPC_CALL_OK) {
		free(call); /* never: the queue is the server's */
		return;
	}
	server->waiting = call;
}

static void start_tell(void *arg)
{
	struct start *start = arg;

	start->ops.started(start->code, &start->err, start->ops.arg);
	free(start);
}

static void on_shut(struct rpc_event *event, bool ok)
{
	struct rpc_server *server =
		(struct rpc_server *)((char *)event - offsetof(struct rpc_server, shut));

	(void)ok;
	server->is_shut = true;
	server_look(server);
}

/*
 * The core removes what it made, some time after a server has ended: perhaps that of the next one.
 * So it makes one of another name. It gets its own when it is all right, and we remove it.
 */
static int core_listen(struct rpc_server *server, struct gs_err *err)
{
	static unsigned int starts;
	cleanup_free char *name = gs_asprintf("%s.%u", server->socket, ++starts);
	cleanup_free char *address = gs_asprintf("unix:%s", name);
	grpc_arg args[] = {
		{ .type = GRPC_ARG_INTEGER,
		  .key = (char *)GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
		  .value.integer = RPC_MAX_REQUEST },
		{ .type = GRPC_ARG_INTEGER,
		  .key = (char *)GRPC_ARG_MAX_CONCURRENT_STREAMS,
		  .value.integer = MAX_CALLS },
		{ .type = GRPC_ARG_INTEGER,
		  .key = (char *)GRPC_ARG_ENABLE_CHANNELZ,
		  .value.integer = 0 },
	};
	const grpc_channel_args all = { GS_ARRAY_SIZE(args), args };
	grpc_server_credentials *plain = grpc_insecure_server_credentials_create();
	struct stat st;
	int port;

	server->server = grpc_server_create(&all, NULL);
	grpc_server_register_completion_queue(server->server, server->rpc->queue, NULL);
	port = grpc_server_add_http2_port(server->server, address, plain);
	grpc_server_credentials_release(plain);
	/* Started even so: what was not can't be shut down. */
	grpc_server_start(server->server);
	if (port == 0)
		return gs_err_set(err, EADDRNOTAVAIL, "can't listen at %s", server->socket);
	if (chmod(name, 0600) < 0 || stat(name, &st) < 0 || rename(name, server->socket) < 0) {
		int code = errno;

		(void)unlink(name);
		return gs_err_errno(err, code, "listening at %s", server->socket);
	}
	server->dev = st.st_dev;
	server->ino = st.st_ino;
	call_await(server);
	return 0;
}

static void server_listen(struct rpc_server *server)
{
	struct start *start = gs_calloc(1, sizeof(*start));

	start->ops = server->ops;
	start->code = core_listen(server, &start->err);
	rpc_post(server->rpc, start_tell, free, start);
}

static void server_begin(void *arg)
{
	struct rpc_server *server = arg;

	server->next = server->rpc->servers;
	server->rpc->servers = server;
	server_listen(server);
}

static void server_drop(void *arg)
{
	struct rpc_server *server = arg;

	if (server->ops.ended)
		server->ops.ended(server->ops.arg);
	free(server->socket);
	free(server);
}

static void server_end(void *arg)
{
	struct rpc_server *server = arg;
	struct stat st;

	if (server->ending)
		return;
	server->ending = true;
	/* Unless another has the name now. */
	if (server->ino != 0 && stat(server->socket, &st) == 0 && st.st_dev == server->dev &&
	    st.st_ino == server->ino)
		(void)unlink(server->socket);
	if (server->server) {
		grpc_server_shutdown_and_notify(server->server, server->rpc->queue, &server->shut);
		grpc_server_cancel_all_calls(server->server);
	}
	server_look(server);
}

void rpc_servers_end(struct rpc *rpc)
{
	struct rpc_server *next;

	for (struct rpc_server *s = rpc->servers; s; s = next) {
		next = s->next;
		server_end(s);
	}
}

struct rpc_server *rpc_server_new(struct rpc *rpc, const char *socket,
				  const struct rpc_server_ops *ops)
{
	struct rpc_server *server = gs_calloc(1, sizeof(*server));

	server->rpc = rpc;
	server->socket = gs_strdup(socket);
	server->ops = *ops;
	server->shut.done = on_shut;
	rpc_run(rpc, server_begin, server_drop, server);
	return server;
}

void rpc_server_push(struct rpc_server *server, const struct gs_buf *bytes)
{
	gs_buf_free(&server->bytes);
	gs_buf_add(&server->bytes, bytes->data ? bytes->data : "", bytes->len);
	server->pushes++;
	for (struct call *call = server->calls; call; call = call->next)
		if (call->stream)
			call_push(call);
}

void rpc_server_free(struct rpc_server *server)
{
	if (server)
		rpc_run(server->rpc, server_end, NULL, server);
}
