// SPDX-License-Identifier: Apache-2.0
/* libcurl's multi interface in the loop: its sockets are polls, its one timer a timer. */
#include <errno.h>
#include <stdlib.h>

#include "kube/impl.h"
#include "common/xalloc.h"

struct kube_socket {
	uv_poll_t poll;
	struct kube *kube;
	curl_socket_t fd;
	struct kube_socket *prev, *next;
};

static void tell_ended(struct kube *kube)
{
	struct kube_request *req;
	CURLMsg *msg;
	int left;

	while ((msg = curl_multi_info_read(kube->multi, &left)) != NULL) {
		if (msg->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&req);
		kube_request_ended(req, msg->data.result);
	}
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct kube_socket *s = poll->data;
	struct kube *kube = s->kube;
	int flags = 0, running;

	/* libuv's word for a socket with an error; reading it tells libcurl which. */
	if (status < 0)
		flags |= CURL_CSELECT_IN | CURL_CSELECT_OUT;
	if (events & UV_READABLE)
		flags |= CURL_CSELECT_IN;
	if (events & UV_WRITABLE)
		flags |= CURL_CSELECT_OUT;
	/* @s may be gone after this. */
	(void)curl_multi_socket_action(kube->multi, s->fd, flags, &running);
	tell_ended(kube);
}

static void on_timer(uv_timer_t *timer)
{
	struct kube *kube = timer->data;
	int running;

	(void)curl_multi_socket_action(kube->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	tell_ended(kube);
}

static int set_timer(CURLM *multi, long ms, void *arg)
{
	struct kube *kube = arg;

	(void)multi;
	if (ms < 0)
		(void)uv_timer_stop(&kube->timer);
	else
		(void)uv_timer_start(&kube->timer, on_timer, (uint64_t)ms, 0);
	return 0;
}

static void on_socket_closed(uv_handle_t *handle)
{
	struct kube_socket *s = handle->data;

	kube_handle_closed(s->kube);
	free(s);
}

static void socket_close(struct kube_socket *s)
{
	if (s->prev)
		s->prev->next = s->next;
	else
		s->kube->sockets = s->next;
	if (s->next)
		s->next->prev = s->prev;
	(void)uv_poll_stop(&s->poll);
	uv_close((uv_handle_t *)&s->poll, on_socket_closed);
}

static struct kube_socket *socket_new(struct kube *kube, curl_socket_t fd)
{
	struct kube_socket *s = gs_calloc(1, sizeof(*s));

	if (uv_poll_init(kube->loop, &s->poll, fd) < 0) {
		free(s);
		return NULL;
	}
	s->kube = kube;
	s->fd = fd;
	s->poll.data = s;
	kube->n_handles++;
	s->next = kube->sockets;
	if (s->next)
		s->next->prev = s;
	kube->sockets = s;
	return s;
}

static int set_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
	struct kube *kube = arg;
	struct kube_socket *s = socket_arg;
	int events = 0;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (s)
			socket_close(s);
		(void)curl_multi_assign(kube->multi, fd, NULL);
		return 0;
	}
	if (!s) {
		s = socket_new(kube, fd);
		if (!s)
			return -1;
		(void)curl_multi_assign(kube->multi, fd, s);
	}
	if (what & CURL_POLL_IN)
		events |= UV_READABLE;
	if (what & CURL_POLL_OUT)
		events |= UV_WRITABLE;
	return uv_poll_start(&s->poll, events, on_poll) < 0 ? -1 : 0;
}

int kube_loop_init(struct kube *kube, struct gs_err *err)
{
	int r;

	r = uv_timer_init(kube->loop, &kube->timer);
	if (r < 0)
		return gs_err_errno(err, -r, "a timer of the loop");
	kube->timer.data = kube;
	kube->n_handles++;
	kube->multi = curl_multi_init();
	if (!kube->multi)
		return gs_err_set(err, ENOMEM, "libcurl has no memory");
	(void)curl_multi_setopt(kube->multi, CURLMOPT_SOCKETFUNCTION, set_socket);
	(void)curl_multi_setopt(kube->multi, CURLMOPT_SOCKETDATA, kube);
	(void)curl_multi_setopt(kube->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	(void)curl_multi_setopt(kube->multi, CURLMOPT_TIMERDATA, kube);
	/* Idle ones; as many as there may be requests would only hold the server's memory. */
	(void)curl_multi_setopt(kube->multi, CURLMOPT_MAXCONNECTS, 3L);
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	kube_handle_closed(handle->data);
}

void kube_loop_close(struct kube *kube)
{
	/* This still calls set_socket() and set_timer(), the former for all that should be open. */
	(void)curl_multi_cleanup(kube->multi);
	kube->multi = NULL;
	while (kube->sockets)
		socket_close(kube->sockets);
	if (kube->n_handles > 0)
		uv_close((uv_handle_t *)&kube->timer, on_closed);
}
