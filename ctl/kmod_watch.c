// SPDX-License-Identifier: Apache-2.0
/*
 * gpusharectl kmod watch: hooks device nodes, watches one container, and takes away again what it
 * has made, however it ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/kname.h"
#include "common/proc.h"
#include "common/xalloc.h"
#include "ctl/ctl.h"
#include "ctl/kmod.h"

/* How often the counts are looked at. */
#define LOOK_MS 1000

struct watching {
	struct gs_klink *link;
	struct gs_kevents *events;
	const char *name; /* of the holding and of the watch */
	struct gs_kwho who;
	int64_t lend_after_ms;
	uint32_t *devs; /* of the nodes named, each once */
	size_t n_devs;

	/* What we made. */
	bool *hooked; /* for each of @devs */
	bool holding, watch;

	uint64_t *touches; /* seen last, for each of @devs */
	int signals, process; /* descriptors; @process -1: by cgroup */
};

/* ---- Making. */

static bool has_dev(const uint32_t *devs, size_t n, uint32_t dev)
{
	for (size_t i = 0; i < n; i++)
		if (devs[i] == dev)
			return true;
	return false;
}

/* The node's number; hooks it unless it is hooked already, which is somebody else's affair. */
static int hook(struct watching *w, const struct gs_kstate *before, const char *path,
		struct gs_err *err)
{
	cleanup_close int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	uint32_t dev;

	if (fd < 0)
		return gs_err_errno(err, errno, "open %s", path);
	if (fstat(fd, &st) < 0)
		return gs_err_errno(err, errno, "look at %s", path);
	if (!S_ISCHR(st.st_mode))
		return gs_err_set(err, EINVAL, "%s is no character device", path);
	dev = gs_kdev_of(st.st_rdev);
	if (has_dev(w->devs, w->n_devs, dev))
		return 0;
	w->devs[w->n_devs] = dev;
	if (!gs_kstate_node(before, dev)) {
		if (gs_klink_hook_add(w->link, fd, NULL, NULL, 0, false, NULL, err) < 0)
			return gs_err_prefix(err, "hook %s", path);
		w->hooked[w->n_devs] = true;
	}
	w->n_devs++;
	return 0;
}

static int make_holding(struct watching *w, struct gs_err *err)
{
	struct gs_kholding_set set = { .name = w->name,
				       .devs = w->devs,
				       .n_devs = w->n_devs,
				       .lend_after_ms = w->lend_after_ms,
				       .hold_max_ms = GS_KTIME_NONE,
				       .settle_ms = GS_KTIME_NONE };

	if (gs_klink_holding_set(w->link, &set, err) < 0)
		return gs_err_prefix(err, "make holding %s", w->name);
	w->holding = true;
	return 0;
}

static int make_watch(struct watching *w, struct gs_err *err)
{
	struct gs_kwatch_set set = { .name = w->name,
				     .role = GS_MEMBER,
				     .who = w->who,
				     .holdings = &w->name,
				     .n_holdings = 1 };

	if (gs_klink_watch_set(w->link, &set, err) < 0)
		return gs_err_prefix(err, "watch the container");
	w->watch = true;
	return 0;
}

static int make(struct watching *w, char *const *nodes, struct gs_err *err)
{
	cleanup_kstate struct gs_kstate before = { 0 };
	int r = gs_klink_dump(w->link, &before, err);

	if (r < 0)
		return r;
	/* SET would change an existing one, and we would take it away in the end. */
	if (gs_kstate_holding(&before, w->name) || gs_kstate_watch(&before, w->name))
		return gs_err_set(err, EEXIST,
				  "there is a holding or a watch %s: give another --name", w->name);
	for (; *nodes; nodes++) {
		r = hook(w, &before, *nodes, err);
		if (r < 0)
			return r;
	}
	r = make_holding(w, err);
	return r < 0 ? r : make_watch(w, err);
}

/* ---- Taking away. */

/* Does another holding need the node? It came while we were watching. */
static bool needed(const struct gs_kstate *now, uint32_t dev)
{
	for (size_t i = 0; i < now->n_holdings; i++)
		if (has_dev(now->holdings[i].devs.v, now->holdings[i].devs.n, dev))
			return true;
	return false;
}

static int say_left(int r, const struct gs_err *err, const char *what)
{
	if (r == 0)
		return CTL_OK;
	ctl_say("%s stays: %s", what, err->msg);
	return CTL_FAILED;
}

/* In the opposite order; what can't be taken away stays, and is told. */
static int unmake(struct watching *w)
{
	cleanup_kstate struct gs_kstate now = { 0 };
	struct gs_err err = { 0 };
	int ret = CTL_OK;

	if (w->watch)
		ret |= say_left(gs_klink_watch_del(w->link, w->name, &err), &err, "the watch");
	if (w->holding)
		ret |= say_left(gs_klink_holding_del(w->link, w->name, &err), &err, "the holding");
	if (gs_klink_dump(w->link, &now, &err) < 0)
		return say_left(-1, &err, "the hooks");
	for (size_t i = w->n_devs; i-- > 0;) {
		const char *name = ctl_kmod_dev(w->devs[i]);

		if (w->hooked[i] && gs_kstate_node(&now, w->devs[i]) && !needed(&now, w->devs[i]))
			ret |= say_left(gs_klink_hook_del(w->link, w->devs[i], &err), &err, name);
	}
	return ret;
}

/* ---- Following. */

static uint64_t touches_of(const struct gs_kwatch *watch, uint32_t dev)
{
	for (size_t i = 0; i < watch->n_counts; i++)
		if (watch->counts[i].dev == dev)
			return watch->counts[i].touches;
	return 0;
}

static int unloaded(struct gs_err *err)
{
	return gs_err_set(err, ENODEV, "the module was unloaded");
}

/*
 * Says what was touched since the last look. -ENOENT: our watch is gone; -ENODEV: so is the module,
 * or will be.
 */
static int look(struct watching *w, struct gs_err *err)
{
	cleanup_kstate struct gs_kstate now = { 0 };
	cleanup_buf struct gs_buf text = { 0 };
	const struct gs_kwatch *watch;
	int r = gs_klink_dump(w->link, &now, err);

	if (r == -ESHUTDOWN || (r < 0 && !gs_klink_loaded(w->link)))
		return unloaded(err);
	if (r < 0)
		return r == -EAGAIN ? 0 : r;
	watch = gs_kstate_watch(&now, w->name);
	if (!watch || !gs_kstate_holding(&now, w->name))
		return gs_err_set(err, ENOENT, "somebody else took the watch away");
	for (size_t i = 0; i < w->n_devs; i++) {
		uint64_t touches = touches_of(watch, w->devs[i]);

		if (touches != w->touches[i])
			gs_buf_addf(&text, "%s%s +%" PRIu64 " (%" PRIu64 ")", text.len ? ", " : "",
				    ctl_kmod_dev(w->devs[i]), touches - w->touches[i], touches);
		w->touches[i] = touches;
	}
	if (text.len)
		ctl_kmod_line(0, "touched: %s", text.data);
	return 0;
}

static bool is_ours(const struct watching *w, const struct gs_kevent *event)
{
	if (event->event == GS_EV_AGENT)
		return true;
	if (event->event == GS_EV_HOOKED || event->event == GS_EV_UNHOOKED)
		return has_dev(w->devs, w->n_devs, event->dev);
	return strcmp(event->name, w->name) == 0 || strcmp(event->watch, w->name) == 0;
}

static void show(const struct watching *w, const struct gs_kevent *event)
{
	cleanup_free char *text = is_ours(w, event) ? ctl_kmod_event_text(event, NULL) : NULL;

	if (text)
		ctl_kmod_line(event->time_ns, "%s", text);
}

/* Tells the events that are there. -ENODEV: the module is another one now, or none. */
static int take_events(struct watching *w, struct gs_err *err)
{
	for (;;) {
		enum gs_kevent_what what = GS_KEVENT_NONE;
		struct gs_kevent event;
		int r = gs_kevent_next(w->events, 0, &what, &event, err);

		if (r < 0 && r != -EINTR && r != -EPROTO)
			return r;
		if (what == GS_KEVENT_UNLOADED || what == GS_KEVENT_LOADED)
			return unloaded(err);
		if (what == GS_KEVENT_LOST)
			ctl_kmod_line(0, "events were lost");
		if (what == GS_KEVENT_GOT)
			show(w, &event);
		else if (what == GS_KEVENT_NONE && r == 0)
			return 0;
	}
}

/* Until a signal, the end of the process or an error. */
static int follow(struct watching *w, struct gs_err *err)
{
	struct pollfd fds[] = {
		{ .fd = w->signals, .events = POLLIN },
		{ .fd = gs_kevents_fd(w->events), .events = POLLIN },
		{ .fd = w->process, .events = POLLIN },
	};

	for (uint64_t next = gs_boottime_ms() + LOOK_MS;;) {
		uint64_t now = gs_boottime_ms();
		int r = 0;

		if (poll(fds, GS_ARRAY_SIZE(fds), now < next ? (int)(next - now) : 0) < 0)
			return gs_err_errno(err, errno, "wait");
		if (fds[1].revents)
			r = take_events(w, err);
		now = gs_boottime_ms();
		if (r == 0 && (now >= next || fds[0].revents || fds[2].revents)) {
			r = look(w, err);
			next = now + LOOK_MS;
		}
		if (r < 0 || fds[0].revents)
			return r;
		if (ferror(stdout))
			return gs_err_set(err, EPIPE, "nobody reads what is said");
		if (fds[2].revents) {
			ctl_kmod_line(0, "process %d is gone", (int)w->who.pid);
			return 0;
		}
	}
}

/* ---- The command line. */

static int open_signals(struct gs_err *err)
{
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	/* What reads our output may go first. */
	(void)signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	return fd < 0 ? gs_err_errno(err, errno, "signalfd") : fd;
}

static int watch(struct watching *w, char *const *nodes)
{
	struct gs_err err = { 0 };
	int ret = CTL_OK, r;

	w->signals = open_signals(&err);
	if (w->signals < 0)
		return ctl_failed(&err);
	if (ctl_kmod_open(&w->link) != CTL_OK)
		return CTL_FAILED;
	if (gs_kevents_open(0, &w->events, &err) < 0)
		return ctl_failed(&err);
	r = make(w, nodes, &err);
	if (r == 0) {
		ctl_kmod_line(0, "watching as %s; ^C ends it", w->name);
		r = follow(w, &err);
	}
	if (r < 0)
		ret = ctl_failed(&err);
	/* With the module went what it kept. */
	if (r == -ENODEV)
		return ret;
	return unmake(w) == CTL_OK ? ret : CTL_FAILED;
}

static int read_pid(const char *text, struct watching *w)
{
	struct gs_err err = { 0 };
	char *end;
	long pid;

	errno = 0;
	pid = strtol(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || pid <= 0 || pid > INT32_MAX)
		return ctl_misused(&ctl_kmod, "--pid takes a number, not %s", text);
	/* Before its start time is read, so that it is the same one. */
	w->process = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (gs_kwho_pid((pid_t)pid, &w->who, &err) < 0)
		return ctl_failed(&err);
	return CTL_OK;
}

static int read_option(struct watching *w, int opt)
{
	struct gs_err err = { 0 };
	uint64_t ms;

	switch (opt) {
	case 'p':
		return read_pid(optarg, w);
	case 'c':
		return gs_kwho_cgroup(optarg, &w->who, &err) < 0 ? ctl_failed(&err) : CTL_OK;
	case 'l':
		if (gs_duration_ms(optarg, UINT32_MAX, &ms, &err) < 0)
			return ctl_misused(&ctl_kmod, "--lend-after: %s", err.msg);
		w->lend_after_ms = (int64_t)ms;
		return CTL_OK;
	case 'n':
		/* A blank would end a column where the name is shown. */
		if (!*optarg || strlen(optarg) > GS_NAME_MAX || strpbrk(optarg, " \t\n\v\f\r"))
			return ctl_misused(&ctl_kmod, "--name takes 1 to %d bytes, none a blank",
					   GS_NAME_MAX);
		w->name = optarg;
		return CTL_OK;
	case 'h':
		return ctl_help(&ctl_kmod);
	default:
		return CTL_USAGE;
	}
}

static void close_all(struct watching *w)
{
	gs_kevents_close(w->events);
	gs_klink_close(w->link);
	gs_cleanup_close(&w->signals);
	gs_cleanup_close(&w->process);
	free(w->devs);
	free(w->hooked);
	free(w->touches);
}

int ctl_kmod_watch(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "pid", required_argument, NULL, 'p' },
		{ "cgroup", required_argument, NULL, 'c' },
		{ "lend-after", required_argument, NULL, 'l' },
		{ "name", required_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct watching w = { .lend_after_ms = GS_KTIME_NONE, .signals = -1, .process = -1 };
	char name[32];
	size_t n;
	int opt, ret = CTL_OK, who = 0;

	(void)snprintf(name, sizeof(name), "ctl-%d", (int)getpid());
	w.name = name;
	while ((opt = ctl_getopt(&ctl_kmod, argc, argv, ":h", longs)) != -1) {
		who += opt == 'p' || opt == 'c';
		ret = who > 1 ? CTL_OK : read_option(&w, opt);
		if (ret != CTL_OK || opt == 'h') {
			close_all(&w);
			return ret;
		}
	}
	n = (size_t)(argc - optind);
	if (who != 1)
		ret = ctl_misused(&ctl_kmod, "watch takes one of --pid and --cgroup");
	else if (!n)
		ret = ctl_misused(&ctl_kmod, "watch which device nodes?");
	if (ret == CTL_OK) {
		w.devs = gs_calloc(n, sizeof(*w.devs));
		w.hooked = gs_calloc(n, sizeof(*w.hooked));
		w.touches = gs_calloc(n, sizeof(*w.touches));
		ret = watch(&w, argv + optind);
	}
	close_all(&w);
	return ret;
}
