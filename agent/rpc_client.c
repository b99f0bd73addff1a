// SPDX-License-Identifier: Apache-2.0
/* Calls to another's server: one message there, one back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/support/alloc.h>

#include "agent/rpc_impl.h"
#include "common/cleanup.h"
#include "common/xalloc.h"

struct rpc_call_out {
	struct rpc_event event; /* first: it is found by that */
	struct rpc *rpc;
	struct rpc_call_out *next, **at;
	char *socket, *method;
	struct gs_buf request;
	const ProtobufCMessageDescriptor *type;
	unsigned int timeout_ms;
	rpc_done *done;
	void *arg;

	grpc_channel *channel;
	grpc_call *call;
	grpc_metadata_array initial, trailing;
	grpc_byte_buffer *sent, *got;
	grpc_status_code status;
	grpc_slice details;

	/* What the loop is told. */
	ProtobufCMessage *answer;
	int code;
	struct gs_err err;
};

static void call_free(struct rpc_call_out *out)
{
	if (out->answer)
		protobuf_c_message_free_unpacked(out->answer, NULL);
	gs_buf_free(&out->request);
	free(out->socket);
	free(out->method);
	free(out);
}

static void call_tell(void *arg)
{
	struct rpc_call_out *out = arg;

	out->done(out->code, out->answer, &out->err, out->arg);
	call_free(out);
}

static void call_cancelled(void *arg)
{
	struct rpc_call_out *out = arg;

	if (out->answer)
		protobuf_c_message_free_unpacked(out->answer, NULL);
	out->answer = NULL;
	out->code = gs_err_set(&out->err, ECANCELED, "%s at %s: this program ends", out->method,
			       out->socket);
	call_tell(out);
}

static int errno_of(grpc_status_code status)
{
	switch (status) {
	/* by the other side: ECANCELED is said where this program ends, and nobody asks again */
	case GRPC_STATUS_CANCELLED:
		return ECONNABORTED;
	case GRPC_STATUS_INVALID_ARGUMENT:
	case GRPC_STATUS_OUT_OF_RANGE:
		return EINVAL;
	case GRPC_STATUS_DEADLINE_EXCEEDED:
		return ETIMEDOUT;
	case GRPC_STATUS_NOT_FOUND:
		return ENOENT;
	case GRPC_STATUS_ALREADY_EXISTS:
		return EEXIST;
	case GRPC_STATUS_PERMISSION_DENIED:
	case GRPC_STATUS_UNAUTHENTICATED:
		return EACCES;
	case GRPC_STATUS_RESOURCE_EXHAUSTED:
		return EMSGSIZE;
	case GRPC_STATUS_FAILED_PRECONDITION:
		return EBUSY;
	case GRPC_STATUS_UNIMPLEMENTED:
		return EOPNOTSUPP;
	case GRPC_STATUS_UNAVAILABLE:
		return ECONNREFUSED;
	default:
		return EIO;
	}
}

static void call_result(struct rpc_call_out *out)
{
	cleanup_free char *details = NULL;

	if (out->status != GRPC_STATUS_OK) {
		details = gs_strndup((const char *)GRPC_SLICE_START_PTR(out->details),
				     GRPC_SLICE_LENGTH(out->details));
		out->code = gs_err_set(&out->err, errno_of(out->status), "%s at %s: %s",
				       out->method, out->socket,
				       *details ? details : "failed without a word");
		return;
	}
	out->answer = rpc_unpack(out->got, out->type);
	if (!out->answer)
		out->code = gs_err_set(&out->err, EBADMSG, "%s at %s: the answer is no %s",
				       out->method, out->socket, out->type->name);
}

static void on_answer(struct rpc_event *event, bool ok)
{
	struct rpc_call_out *out = (struct rpc_call_out *)event;

	(void)ok; /* a status is always received */
	call_result(out);
	grpc_slice_unref(out->details);
	grpc_metadata_array_destroy(&out->initial);
	grpc_metadata_array_destroy(&out->trailing);
	grpc_byte_buffer_destroy(out->sent);
	grpc_byte_buffer_destroy(out->got);
	grpc_call_unref(out->call);
	grpc_channel_destroy(out->channel);
	*out->at = out->next;
	if (out->next)
		out->next->at = out->at;
	rpc_post(out->rpc, call_tell, call_cancelled, out);
}

static grpc_channel *channel_to(const char *socket)
{
	cleanup_free char *target = gs_asprintf("unix:%s", socket);
	grpc_arg args[] = {
		/* Go's HTTP/2 server refuses the name that the core makes of a socket's path. */
		{ .type = GRPC_ARG_STRING,
		  .key = (char *)GRPC_ARG_DEFAULT_AUTHORITY,
		  .value.string = (char *)"localhost" },
		{ .type = GRPC_ARG_INTEGER,
		  .key = (char *)GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
		  .value.integer = RPC_MAX_ANSWER },
		/* Nothing that happened to an earlier connection delays this one. */
		{ .type = GRPC_ARG_INTEGER,
		  .key = (char *)GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL,
		  .value.integer = 1 },
		/* Whoever wants it once more says so. */
		{ .type = GRPC_ARG_INTEGER,
		  .key = (char *)GRPC_ARG_ENABLE_RETRIES,
		  .value.integer = 0 },
		/* http_proxy in the environment is for others. */
		{ .type = GRPC_ARG_INTEGER,
		  .key = (char *)GRPC_ARG_ENABLE_HTTP_PROXY,
		  .value.integer = 0 },
		{ .type = GRPC_ARG_INTEGER,
		  .key = (char *)GRPC_ARG_ENABLE_CHANNELZ,
		  .value.integer = 0 },
	};
	const grpc_channel_args all = { GS_ARRAY_SIZE(args), args };
	grpc_channel_credentials *plain = grpc_insecure_credentials_create();
	grpc_channel *channel = grpc_channel_create(target, plain, &all);

	grpc_channel_credentials_release(plain);
	return channel;
}

static void call_begin(void *arg)
{
	struct rpc_call_out *out = arg;
	grpc_slice method = grpc_slice_from_copied_string(out->method);
	gpr_timespec until = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
					  gpr_time_from_millis(out->timeout_ms, GPR_TIMESPAN));
	grpc_op ops[6] = { 0 };

	if (out->rpc->stopping) {
		grpc_slice_unref(method);
		rpc_post(out->rpc, call_cancelled, call_cancelled, out);
		return;
	}
	out->channel = channel_to(out->socket);
	out->call = grpc_channel_create_call(out->channel, NULL, GRPC_PROPAGATE_DEFAULTS,
					     out->rpc->queue, method, NULL, until, NULL);
	grpc_slice_unref(method);
	out->sent = rpc_bytes(&out->request);
	grpc_metadata_array_init(&out->initial);
	grpc_metadata_array_init(&out->trailing);
	out->details = grpc_empty_slice();
	ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
	ops[1].op = GRPC_OP_SEND_MESSAGE;
	ops[1].data.send_message.send_message = out->sent;
	ops[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
	ops[3].op = GRPC_OP_RECV_INITIAL_METADATA;
	ops[3].data.recv_initial_metadata.recv_initial_metadata = &out->initial;
	ops[4].op = GRPC_OP_RECV_MESSAGE;
	ops[4].data.recv_message.recv_message = &out->got;
	ops[5].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
	ops[5].data.recv_status_on_client.trailing_metadata = &out->trailing;
	ops[5].data.recv_status_on_client.status = &out->status;
	ops[5].data.recv_status_on_client.status_details = &out->details;
	out->next = out->rpc->calls;
	out->at = &out->rpc->calls;
	if (out->next)
		out->next->at = &out->next;
	out->rpc->calls = out;
	out->event.done = on_answer;
	/* Can't fail: six different operations, the first of this call. */
	(void)grpc_call_start_batch(out->call, ops, GS_ARRAY_SIZE(ops), &out->event, NULL);
}

void rpc_calls_cancel(struct rpc *rpc)
{
	for (struct rpc_call_out *out = rpc->calls; out; out = out->next)
		(void)grpc_call_cancel(out->call, NULL);
}

void rpc_call(struct rpc *rpc, const char *socket, const char *method,
	      const ProtobufCMessage *request, const ProtobufCMessageDescriptor *type,
	      unsigned int timeout_ms, rpc_done *done, void *arg)
{
	struct rpc_call_out *out = gs_calloc(1, sizeof(*out));

	out->rpc = rpc;
	out->socket = gs_strdup(socket);
	out->method = gs_strdup(method);
	rpc_append(&out->request, request);
	out->type = type;
	out->timeout_ms = timeout_ms;
	out->done = done;
	out->arg = arg;
	rpc_run(rpc, call_begin, call_cancelled, out);
}
