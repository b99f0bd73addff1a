// SPDX-License-Identifier: Apache-2.0
/* Who has a device node open: a walk over /proc/PID/fd. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/probe_scan.h"
#include "agent/probe_share.h"
#include "common/cleanup.h"
#include "common/file.h"

/* A node with 10,000 containers has a tenth of that. */
#define FILES_MAX 4000000
/* How many processes, or files of one, to look at before looking whether somebody waits. */
#define HURRY_EVERY 8
#define HURRY_FILES 256

pid_t probe_agent;
int probe_scan_hurry = -1;
/* A tenth of a second's work each, and what a pod has that means no harm. */
size_t probe_scan_pod_files = 65536, probe_scan_free_files = 65536;

struct scan {
	const struct probe_card *cards;
	size_t n;
	scan_found found;
	void *arg;
	size_t files;
	struct shares shares;
};

/* Gone, between the moment that we saw its name and this one. */
static bool gone(int code)
{
	return code == ENOENT || code == ESRCH;
}

/* The card whose own node has that number. */
static const struct probe_card *card_of(const struct scan *scan, dev_t rdev)
{
	for (size_t i = 0; i < scan->n; i++)
		for (size_t j = 0; j < scan->cards[i].n_nodes; j++)
			if (scan->cards[i].nodes[j].own && scan->cards[i].nodes[j].rdev == rdev)
				return &scan->cards[i];
	return NULL;
}

/*
 * What the descriptor @name in @dirfd leads to. AT_STATX_DONT_SYNC: the file may be on a network
 * file system whose server is away.
 */
static void look_at(struct scan *scan, pid_t pid, int procfd, int dirfd, const char *name)
{
	const struct probe_card *card;
	struct statx st;

	if (statx(dirfd, name, AT_STATX_DONT_SYNC, STATX_TYPE, &st) < 0 || !S_ISCHR(st.stx_mode))
		return;
	card = card_of(scan, makedev(st.stx_rdev_major, st.stx_rdev_minor));
	if (card)
		scan->found(card, pid, procfd, name, scan->arg);
}

/* Does somebody wait for us? A card's return must not wait for a walk over all processes. */
static bool hurry(void)
{
	struct pollfd p = { probe_scan_hurry, POLLIN, 0 };

	return probe_scan_hurry >= 0 && poll(&p, 1, 0) > 0;
}

static int urgent(struct gs_err *err)
{
	return gs_err_set(err, EINTR, "something else is more urgent");
}

/* It is not looked at any further, nor are others of its pod. */
static int cut(struct scan *scan, int procfd, struct gs_err *err)
{
	struct share *share = shares_of(&scan->shares, procfd, err);

	if (share) {
		share->cut = true;
		share->files = probe_scan_pod_files;
	}
	return -err->code;
}

static int scan_process(struct scan *scan, int proc, const char *name, pid_t pid,
			struct gs_err *err)
{
	cleanup_close int procfd = -1;
	cleanup_dir DIR *d = NULL;
	struct share *share = NULL;
	size_t had = 0, own = 0;
	struct dirent *e;

	procfd = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (procfd >= 0)
		d = gs_opendirat(procfd, "fd");
	if (!d)
		return gone(errno) ? 0 : gs_err_errno(err, errno, "open files of process %s", name);
	/* whose they are costs another look, for which there is no reason on most nodes */
	if (scan->files >= probe_scan_free_files) {
		share = shares_of(&scan->shares, procfd, err);
		if (err->code)
			return -err->code;
		had = share ? share->files : 0;
	}
	/* A kernel thread's folder is there, and empty. */
	for (errno = 0; (e = readdir(d)); errno = 0) {
		if (e->d_name[0] == '.')
			continue;
		if (had + own == probe_scan_pod_files)
			return cut(scan, procfd, err);
		if (share)
			share->files++;
		own++;
		if (++scan->files > FILES_MAX)
			return gs_err_set(err, E2BIG, "more than %d open files", FILES_MAX);
		look_at(scan, pid, procfd, dirfd(d), e->d_name);
		/* one process may have a million of them */
		if (scan->files % HURRY_FILES == 0 && hurry())
			return urgent(err);
	}
	if (errno && !gone(errno))
		return gs_err_errno(err, errno, "open files of process %s", name);
	return 0;
}

static int scan_all(struct scan *scan, struct gs_err *err)
{
	cleanup_free char *path = probe_path("/proc");
	cleanup_dir DIR *d = opendir(path);
	size_t seen = 0;
	struct dirent *e;
	int r = 0;

	if (!d)
		return gs_err_errno(err, errno, "open directory %s", path);
	while (r == 0 && (e = readdir(d))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		/* A library of ours may have the node open, and the agent while it hooks it. */
		if (pid > 0 && pid != getpid() && pid != probe_agent)
			r = scan_process(scan, dirfd(d), e->d_name, pid, err);
		if (r == 0 && ++seen % HURRY_EVERY == 0 && hurry())
			r = urgent(err);
	}
	return r;
}

int probe_scan(const struct probe_card *cards, size_t n, scan_found found, void *arg,
	       struct gs_strv *ret_unseen, struct gs_err *err)
{
	struct scan scan = { .cards = cards, .n = n, .found = found, .arg = arg };
	struct gs_err why = { 0 };
	int r = scan_all(&scan, &why);

	if (r == 0)
		r = shares_cut(&scan.shares, ret_unseen, &why);
	shares_free(&scan.shares);
	if (r < 0 && err)
		*err = why;
	return r;
}

void probe_scan_unseen(const struct gs_strv *unseen, size_t n, struct probe_load *rets)
{
	for (size_t i = 0; i < n; i++) {
		gs_strv_free(&rets[i].unseen);
		gs_strv_merge(&rets[i].unseen, unseen);
	}
}

struct open_files {
	const struct probe_card *cards;
	struct probe_load *rets;
};

static void found_open(const struct probe_card *card, pid_t pid, int procfd, const char *fd,
		       void *arg)
{
	struct open_files *open = arg;

	(void)procfd;
	(void)fd;
	probe_load_process(&open->rets[card - open->cards], pid, 0);
}

int probe_scan_open(const struct probe_card *cards, size_t n, struct probe_load *rets,
		    struct gs_err *err)
{
	struct open_files open = { cards, rets };
	cleanup_strv struct gs_strv unseen = { 0 };
	int r = probe_scan(cards, n, found_open, &open, &unseen, err);

	for (size_t i = 0; r == 0 && i < n; i++)
		rets[i].processes_known = true;
	probe_scan_unseen(&unseen, n, rets);
	return r;
}
