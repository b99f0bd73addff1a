// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's client of the Kubernetes API, by hand:
 *
 *	kubeclient SERVER CA-FILE TOKEN-FILE NODE ORDERS
 *
 * Orders are lines of the FIFO ORDERS: "watch", "delete NAMESPACE NAME UID",
 * "event NAMESPACE NAME UID TYPE REASON MESSAGE...", "cut" (all connections break), "end". What the
 * client tells is a line each on stdout: "pod NS/NAME UID PHASE", "gone NS/NAME UID", "synced",
 * "well", "bad: WHY", "note: WHAT", "deleted NAME RESULT MESSAGE", "cut N".
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/xalloc.h"
#include "kube/kube.h"

#define WORDS_MAX 7

static void on_pod(const struct kube_pod *pod, bool gone, void *arg)
{
	(void)arg;
	(void)printf("%s %s/%s %s%s%s%s\n", gone ? "gone" : "pod", pod->namespace, pod->name,
		     pod->uid, pod->phase ? " " : "", pod->phase ? pod->phase : "",
		     pod->deleting ? " deleting" : "");
}

static void on_synced(void *arg)
{
	(void)arg;
	(void)puts("synced");
}

static void on_health(bool ok, const char *why, void *arg)
{
	(void)arg;
	if (ok)
		(void)puts("well");
	else
		(void)printf("bad: %s\n", why);
}

static void on_note(const char *what, void *arg)
{
	(void)arg;
	(void)printf("note: %s\n", what);
}

static void on_deleted(int result, const struct gs_err *err, void *arg)
{
	char *name = arg;

	(void)printf("deleted %s %d %s\n", name, result, err ? err->msg : "");
	free(name);
}

/* Parts @line into at most WORDS_MAX words, the last of which has the rest; how many there are. */
static size_t part(char *line, char **words)
{
	size_t n = 0;

	while (line && *line != '\0' && n < WORDS_MAX - 1)
		words[n++] = strsep(&line, " ");
	if (line && *line != '\0')
		words[n++] = line;
	return n;
}

/* As a network does that loses its connections. How many there were. */
static int cut_connections(void)
{
	int n = 0;

	for (int fd = 3; fd < 64; fd++) {
		struct sockaddr addr = { 0 };
		socklen_t len = sizeof(addr);

		if (getpeername(fd, &addr, &len) == 0 && addr.sa_family == AF_INET &&
		    shutdown(fd, SHUT_RDWR) == 0)
			n++;
	}
	return n;
}

static void obey(uv_loop_t *loop, struct kube *kube, char *line)
{
	char *words[WORDS_MAX];
	size_t n = part(line, words);

	if (n == 1 && strcmp(words[0], "watch") == 0)
		kube_watch_pods(kube);
	else if (n == 4 && strcmp(words[0], "delete") == 0)
		kube_delete_pod(kube, words[1], words[2], words[3], on_deleted,
				gs_strdup(words[2]));
	else if (n == 7 && strcmp(words[0], "event") == 0)
		kube_event(kube, words[1], words[2], words[3], words[4], words[5], words[6]);
	else if (n == 1 && strcmp(words[0], "cut") == 0)
		(void)printf("cut %d\n", cut_connections());
	else if (n == 1 && strcmp(words[0], "end") == 0)
		uv_stop(loop);
	else
		(void)printf("not understood: %s\n", n > 0 ? words[0] : "");
}

static void on_order(uv_poll_t *poll, int status, int events)
{
	static FILE *orders;
	static char *line;
	static size_t size;
	ssize_t len;
	int fd;

	(void)status;
	(void)events;
	if (!orders && uv_fileno((uv_handle_t *)poll, &fd) == 0) {
		orders = fdopen(fd, "r");
		setvbuf(orders, NULL, _IONBF, 0);
	}
	len = orders ? getline(&line, &size, orders) : -1;
	if (len <= 0)
		return;
	line[strcspn(line, "\n")] = '\0';
	obey(poll->loop, poll->data, line);
}

static int fail(const char *what, const char *why)
{
	(void)fprintf(stderr, "kubeclient: %s: %s\n", what, why);
	return 1;
}

int main(int argc, char **argv)
{
	const struct kube_ops ops = { on_pod, on_synced, on_health, on_note, NULL };
	char component[] = "kubeclient";
	struct kube_config config;
	struct kube *kube;
	struct gs_err err;
	uv_loop_t loop;
	uv_poll_t poll;
	int fd;

	if (argc != 6)
		return fail("usage", "kubeclient SERVER CA-FILE TOKEN-FILE NODE ORDERS");
	config = (struct kube_config){ .server = argv[1],
				       .ca_file = argv[2],
				       .token_file = argv[3],
				       .node = argv[4],
				       .component = component };
	(void)signal(SIGPIPE, SIG_IGN);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	/* for writing too: it stays open when a writer goes */
	fd = open(argv[5], O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return fail(argv[5], strerror(errno));
	(void)uv_loop_init(&loop);
	if (kube_new(&loop, &config, &ops, &kube, &err) < 0)
		return fail("the client", err.msg);
	if (uv_poll_init(&loop, &poll, fd) < 0)
		return fail(argv[5], "can't be waited for");
	poll.data = kube;
	(void)uv_poll_start(&poll, UV_READABLE, on_order);
	(void)uv_run(&loop, UV_RUN_DEFAULT);

	kube_free(kube);
	uv_close((uv_handle_t *)&poll, NULL);
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	if (uv_loop_close(&loop) < 0)
		return fail("the client", "leaves handles behind");
	(void)puts("ended");
	return 0;
}
