// SPDX-License-Identifier: Apache-2.0
/* The thread that speaks to gRPC's C core, its jobs and its mailbox. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <grpc/byte_buffer_reader.h>
#include <grpc/support/log.h>

#include "agent/rpc_impl.h"
#include "common/cleanup.h"
#include "common/xalloc.h"

/* Calls are cancelled and listeners closed at once; it takes milliseconds. */
#define STOP_SECONDS 5

grpc_byte_buffer *rpc_bytes(const struct gs_buf *bytes)
{
	grpc_slice slice =
		grpc_slice_from_copied_buffer(bytes->data ? bytes->data : "", bytes->len);
	grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);

	grpc_slice_unref(slice);
	return buffer;
}

void rpc_append(struct gs_buf *out, const ProtobufCMessage *message)
{
	size_t len = protobuf_c_message_get_packed_size(message);
	uint8_t *bytes = gs_malloc(len + 1);

	(void)protobuf_c_message_pack(message, bytes);
	gs_buf_add(out, (const char *)bytes, len);
	free(bytes);
}

ProtobufCMessage *rpc_unpack(grpc_byte_buffer *buffer, const ProtobufCMessageDescriptor *type)
{
	grpc_byte_buffer_reader reader;
	ProtobufCMessage *message;
	grpc_slice slice;

	/* Fails for a compressed one that can't be decompressed. */
	if (!buffer || !grpc_byte_buffer_reader_init(&reader, buffer))
		return NULL;
	slice = grpc_byte_buffer_reader_readall(&reader);
	message = protobuf_c_message_unpack(type, NULL, GRPC_SLICE_LENGTH(slice),
					    GRPC_SLICE_START_PTR(slice));
	grpc_slice_unref(slice);
	grpc_byte_buffer_reader_destroy(&reader);
	return message;
}

static void list_add(struct rpc_list *list, void (*run)(void *arg), void (*drop)(void *arg),
		     void *arg)
{
	struct rpc_item *item = gs_calloc(1, sizeof(*item));

	item->run = run;
	item->drop = drop;
	item->arg = arg;
	if (!list->first)
		list->last = &list->first;
	*list->last = item;
	list->last = &item->next;
}

static struct rpc_item *list_take(struct rpc *rpc, struct rpc_list *list)
{
	struct rpc_item *items;

	(void)pthread_mutex_lock(&rpc->lock);
	items = gs_steal(list->first);
	(void)pthread_mutex_unlock(&rpc->lock);
	return items;
}

static void items_do(struct rpc_item *items, bool run)
{
	while (items) {
		struct rpc_item *item = items;
		void (*call)(void *arg) = run ? item->run : item->drop;

		items = item->next;
		if (call)
			call(item->arg);
		free(item);
	}
}

void rpc_run(struct rpc *rpc, void (*run)(void *arg), void (*drop)(void *arg), void *arg)
{
	bool kick, ended;

	(void)pthread_mutex_lock(&rpc->lock);
	ended = rpc->ended;
	if (!ended)
		list_add(&rpc->jobs, run, drop, arg);
	kick = !ended && !rpc->kicking;
	if (kick) {
		rpc->kicking = true;
		(void)grpc_call_start_batch(rpc->kick, NULL, 0, &rpc->kicked, NULL);
	}
	(void)pthread_mutex_unlock(&rpc->lock);
	if (ended && drop)
		drop(arg);
}

void rpc_post(struct rpc *rpc, void (*run)(void *arg), void (*drop)(void *arg), void *arg)
{
	(void)pthread_mutex_lock(&rpc->lock);
	list_add(&rpc->mail, run, drop, arg);
	(void)pthread_mutex_unlock(&rpc->lock);
	rpc->wake(rpc->wake_arg);
}

void rpc_dispatch(struct rpc *rpc)
{
	items_do(list_take(rpc, &rpc->mail), true);
}

static void on_kick(struct rpc_event *event, bool ok)
{
	struct rpc *rpc = (struct rpc *)((char *)event - offsetof(struct rpc, kicked));

	(void)ok;
	(void)pthread_mutex_lock(&rpc->lock);
	rpc->kicking = false;
	(void)pthread_mutex_unlock(&rpc->lock);
	items_do(list_take(rpc, &rpc->jobs), true);
}

static void on_stop(void *arg)
{
	struct rpc *rpc = arg;

	rpc->stopping = true;
	rpc_calls_cancel(rpc);
	rpc_servers_end(rpc);
}

/* The last event of a queue that is shut down says so, after all that were still to come. */
static void handle_events(struct rpc *rpc)
{
	const gpr_timespec never = gpr_inf_future(GPR_CLOCK_MONOTONIC);
	bool shut = false;

	for (;;) {
		grpc_event got;

		if (rpc->stopping && !shut && !rpc->servers && !rpc->calls) {
			(void)pthread_mutex_lock(&rpc->lock);
			rpc->ended = true;
			(void)pthread_mutex_unlock(&rpc->lock);
			grpc_completion_queue_shutdown(rpc->queue);
			shut = true;
		}
		got = grpc_completion_queue_next(rpc->queue, never, NULL);
		if (got.type == GRPC_QUEUE_SHUTDOWN)
			return;
		if (got.type == GRPC_OP_COMPLETE) {
			struct rpc_event *event = got.tag;

			event->done(event, got.success);
		}
	}
}

static void *thread_main(void *arg)
{
	struct rpc *rpc = arg;

	handle_events(rpc);
	return NULL;
}

/* Every failure comes as a status; what the core wants to print besides is nobody's. */
static void log_nothing(gpr_log_func_args *args)
{
	(void)args;
}

static void core_begin(struct rpc *rpc)
{
	gpr_set_log_function(log_nothing);
	grpc_init();
	rpc->queue = grpc_completion_queue_create_for_next(NULL);
	rpc->lame = grpc_lame_client_channel_create(NULL, GRPC_STATUS_UNAVAILABLE, "");
	rpc->kick = grpc_channel_create_call(rpc->lame, NULL, 0, rpc->queue,
					     grpc_slice_from_static_string("/"), NULL,
					     gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
}

static void core_end(struct rpc *rpc)
{
	grpc_call_unref(rpc->kick);
	grpc_channel_destroy(rpc->lame);
	grpc_completion_queue_destroy(rpc->queue);
	grpc_shutdown_blocking();
	(void)pthread_mutex_destroy(&rpc->lock);
	free(rpc);
}

int rpc_new(void (*wake)(void *arg), void *arg, struct rpc **ret, struct gs_err *err)
{
	struct rpc *rpc = gs_calloc(1, sizeof(*rpc));
	sigset_t all, before;
	int code;

	rpc->wake = wake;
	rpc->wake_arg = arg;
	rpc->kicked.done = on_kick;
	(void)pthread_mutex_init(&rpc->lock, NULL);
	/* Threads inherit the mask: the core starts some now and others from ours. */
	(void)sigfillset(&all);
	/* a call that the filter refuses is answered by a handler, or ends the process */
	(void)sigdelset(&all, SIGSYS);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	core_begin(rpc);
	code = pthread_create(&rpc->thread, NULL, thread_main, rpc);
	if (code != 0) {
		grpc_completion_queue_shutdown(rpc->queue);
		core_end(rpc);
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (code != 0)
		return gs_err_errno(err, code, "starting a thread for gRPC");
	(void)pthread_setname_np(rpc->thread, "grpc");
	*ret = rpc;
	return 0;
}

int rpc_free(struct rpc *rpc)
{
	struct timespec until;

	if (!rpc)
		return 0;
	rpc_run(rpc, on_stop, NULL, rpc);
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += STOP_SECONDS;
	if (pthread_timedjoin_np(rpc->thread, NULL, &until) != 0)
		return -ETIMEDOUT;
	items_do(gs_steal(rpc->jobs.first), false);
	items_do(gs_steal(rpc->mail.first), false);
	core_end(rpc);
	return 0;
}
