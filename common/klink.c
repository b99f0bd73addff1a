// SPDX-License-Identifier: Apache-2.0
/* The commands of the kernel module. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/klink.h"
#include "common/knl.h"
#include "common/xalloc.h"

/* How often a dump is asked for again before its reader hears that nothing stands still. */
#define DUMP_TRIES 20

struct gs_klink {
	struct gs_knl nl;
	uint16_t family; /* 0: not known, or not there any more */
};

static int not_loaded(struct gs_err *err)
{
	return gs_err_set(err, ENOENT, "kernel module gpushare is not loaded");
}

/* What the kernel's macros put before the module's own words. */
#define MODULE_PREFIX "gpushare: "

/* What the kernel answered, as a sentence about the module. */
static int refusal(const struct gs_klink *link, struct gs_err *err)
{
	if (!link->nl.refused)
		return gs_err_prefix(err, "kernel module gpushare");
	/* Generic netlink's own check of the sender says nothing. */
	if (!link->nl.said && err->code == EPERM)
		return gs_err_set(err, EPERM,
				  "to speak to kernel module gpushare needs CAP_NET_ADMIN in the "
				  "initial user namespace");
	if (strncmp(err->msg, MODULE_PREFIX, strlen(MODULE_PREFIX)) == 0)
		(void)memmove(err->msg, err->msg + strlen(MODULE_PREFIX),
			      strlen(err->msg + strlen(MODULE_PREFIX)) + 1);
	return gs_err_prefix(err, "the module refused");
}

static int take_status(const struct nlmsghdr *nlh, void *arg, struct gs_err *err)
{
	return gs_kmsg_cmd(nlh) == GS_CMD_STATUS ? gs_kmsg_status(nlh, arg, err) : 0;
}

static int take_node(const struct nlmsghdr *nlh, void *arg, struct gs_err *err)
{
	return gs_kmsg_cmd(nlh) == GS_CMD_NODE ? gs_kmsg_node(nlh, arg, err) : 0;
}

static int take_state(const struct nlmsghdr *nlh, void *arg, struct gs_err *err)
{
	return gs_kmsg_add(nlh, arg, err);
}

/* Finds the family and sees whether its messages mean what we think. */
static int find_module(struct gs_klink *link, struct gs_err *err)
{
	struct gs_kstatus status = { 0 };
	struct gs_kfamily family;
	struct gs_kreq req;
	int r = gs_knl_family(&link->nl, GS_GENL_NAME, GS_MCGRP_EVENTS, &family, err);

	if (r == -ENOENT && link->nl.refused)
		return not_loaded(err);
	if (r < 0)
		return gs_err_prefix(err, "find kernel module gpushare");
	gs_kreq_start(&req, family.id, GS_CMD_STATUS, GS_GENL_VERSION);
	r = gs_knl_ask(&link->nl, &req, false, take_status, &status, err);
	if (r == -ENOENT && link->nl.refused && !link->nl.said)
		return not_loaded(err);
	if (r < 0)
		return refusal(link, err);
	if (status.abi != GS_ABI_VERSION)
		return gs_err_set(err, EPROTONOSUPPORT,
				  "kernel module gpushare has ABI %u, and this program is for %d",
				  status.abi, GS_ABI_VERSION);
	link->family = family.id;
	return 0;
}

/*
 * Asks. Generic netlink answers -ENOENT without a word where there is no family of that number, so
 * when the module was unloaded; the number of one that was loaded again is another one.
 */
static int ask(struct gs_klink *link, struct gs_kreq *req, bool dump, gs_knl_take take, void *arg,
	       struct gs_err *err)
{
	struct gs_err own = { 0 };
	int r = 0;

	err = err ? err : &own;
	for (int tries = 0; tries < 2; tries++) {
		if (!link->family)
			r = find_module(link, err);
		if (!link->family)
			return r;
		req->nlh->nlmsg_type = link->family;
		r = gs_knl_ask(&link->nl, req, dump, take, arg, err);
		if (r == 0)
			return 0;
		if (r != -ENOENT || !link->nl.refused || link->nl.said)
			break;
		link->family = 0;
	}
	return refusal(link, err);
}

static void start(struct gs_kreq *req, uint8_t cmd)
{
	gs_kreq_start(req, 0, cmd, GS_GENL_VERSION);
}

int gs_klink_open(struct gs_klink **ret, struct gs_err *err)
{
	cleanup_klink struct gs_klink *link = gs_calloc(1, sizeof(*link));
	struct gs_err own = { 0 };
	int r;

	err = err ? err : &own;
	r = gs_knl_open(&link->nl, 0, err);
	if (r == 0)
		r = find_module(link, err);
	if (r == 0)
		*ret = gs_steal(link);
	return r;
}

void gs_klink_close(struct gs_klink *link)
{
	if (!link)
		return;
	gs_knl_close(&link->nl);
	free(link);
}

bool gs_klink_loaded(const struct gs_klink *link)
{
	return link->family != 0;
}

uint32_t gs_klink_port(const struct gs_klink *link)
{
	return link->nl.sock ? mnl_socket_get_portid(link->nl.sock) : 0;
}

int gs_klink_status(struct gs_klink *link, struct gs_kstatus *ret, struct gs_err *err)
{
	struct gs_kstatus status = { 0 };
	struct gs_kreq req;
	int r;

	start(&req, GS_CMD_STATUS);
	r = ask(link, &req, false, take_status, &status, err);
	if (r == 0)
		*ret = status;
	return r;
}

int gs_klink_heartbeat(struct gs_klink *link, struct gs_err *err)
{
	struct gs_kreq req;

	start(&req, GS_CMD_HEARTBEAT);
	return ask(link, &req, false, NULL, NULL, err);
}

int gs_klink_hook_add(struct gs_klink *link, int fd, const char *driver, const uint32_t *passive,
		      size_t n, bool revocable, struct gs_knode *ret, struct gs_err *err)
{
	struct gs_knode node = { 0 };
	struct gs_kreq req;
	int r;

	start(&req, GS_CMD_HOOK_ADD);
	gs_kreq_u32(&req, GS_A_FD, (uint32_t)fd);
	if (driver)
		gs_kreq_str(&req, GS_A_DRIVER, driver);
	if (n)
		gs_kreq_data(&req, GS_A_PASSIVE, passive, n * sizeof(*passive));
	if (revocable)
		gs_kreq_flag(&req, GS_A_REVOCABLE);
	r = ask(link, &req, false, take_node, &node, err);
	if (r == 0 && ret)
		*ret = node;
	return r;
}

int gs_klink_hook_del(struct gs_klink *link, uint32_t dev, struct gs_err *err)
{
	struct gs_kreq req;

	start(&req, GS_CMD_HOOK_DEL);
	gs_kreq_u32(&req, GS_A_DEV, dev);
	return ask(link, &req, false, NULL, NULL, err);
}

/* Adds a time; false: it is too long for the module. */
static bool add_time(struct gs_kreq *req, uint16_t type, int64_t ms)
{
	if (ms > UINT32_MAX)
		return false;
	if (ms >= 0)
		gs_kreq_u32(req, type, (uint32_t)ms);
	return true;
}

int gs_klink_holding_set(struct gs_klink *link, const struct gs_kholding_set *set,
			 struct gs_err *err)
{
	struct gs_kreq req;

	start(&req, GS_CMD_HOLDING_SET);
	gs_kreq_str(&req, GS_A_NAME, set->name);
	gs_kreq_data(&req, GS_A_DEVS, set->devs, set->n_devs * sizeof(*set->devs));
	if (!add_time(&req, GS_A_LEND_AFTER_MS, set->lend_after_ms) ||
	    !add_time(&req, GS_A_HOLD_MAX_MS, set->hold_max_ms) ||
	    !add_time(&req, GS_A_SETTLE_MS, set->settle_ms))
		return gs_err_set(err, ERANGE, "holding %s: a time is longer than %u ms", set->name,
				  UINT32_MAX);
	return ask(link, &req, false, NULL, NULL, err);
}

/* The commands that take nothing but a name, or a name and a sequence number. */
static int by_name(struct gs_klink *link, uint8_t cmd, const char *name, struct gs_err *err)
{
	struct gs_kreq req;

	start(&req, cmd);
	gs_kreq_str(&req, GS_A_NAME, name);
	return ask(link, &req, false, NULL, NULL, err);
}

static int by_seq(struct gs_klink *link, uint8_t cmd, const char *name, uint64_t seq,
		  struct gs_err *err)
{
	struct gs_kreq req;

	start(&req, cmd);
	gs_kreq_str(&req, GS_A_NAME, name);
	gs_kreq_u64(&req, GS_A_SEQ, seq);
	return ask(link, &req, false, NULL, NULL, err);
}

int gs_klink_holding_del(struct gs_klink *link, const char *name, struct gs_err *err)
{
	return by_name(link, GS_CMD_HOLDING_DEL, name, err);
}

int gs_klink_watch_set(struct gs_klink *link, const struct gs_kwatch_set *set, struct gs_err *err)
{
	struct nlattr *nest;
	struct gs_kreq req;

	start(&req, GS_CMD_WATCH_SET);
	gs_kreq_str(&req, GS_A_NAME, set->name);
	gs_kreq_u8(&req, GS_A_ROLE, (uint8_t)set->role);
	if (set->who.pid) {
		gs_kreq_u32(&req, GS_A_PID, (uint32_t)set->who.pid);
		gs_kreq_u64(&req, GS_A_START_TIME, set->who.start_time);
	} else {
		gs_kreq_u64(&req, GS_A_CGROUP_ID, set->who.cgroup_id);
	}
	if (set->who.cgroup_v1)
		gs_kreq_flag(&req, GS_A_CGROUP_V1);
	if (set->n_holdings) {
		nest = gs_kreq_nest(&req, GS_A_HOLDINGS);
		for (size_t i = 0; i < set->n_holdings; i++)
			gs_kreq_str(&req, GS_A_NAME, set->holdings[i]);
		gs_kreq_nest_end(&req, nest);
	}
	if (set->kill_on_return)
		gs_kreq_flag(&req, GS_A_KILL_ON_RETURN);
	return ask(link, &req, false, NULL, NULL, err);
}

int gs_klink_watch_del(struct gs_klink *link, const char *name, struct gs_err *err)
{
	return by_name(link, GS_CMD_WATCH_DEL, name, err);
}

int gs_klink_lend(struct gs_klink *link, const char *name, uint64_t seq, struct gs_err *err)
{
	return by_seq(link, GS_CMD_LEND, name, seq, err);
}

int gs_klink_sample(struct gs_klink *link, const char *name, uint64_t seq, struct gs_err *err)
{
	return by_seq(link, GS_CMD_SAMPLE, name, seq, err);
}

int gs_klink_withdraw(struct gs_klink *link, const char *name, struct gs_err *err)
{
	return by_name(link, GS_CMD_WITHDRAW, name, err);
}

int gs_klink_release(struct gs_klink *link, const char *name, uint64_t seq, struct gs_err *err)
{
	return by_seq(link, GS_CMD_RELEASE, name, seq, err);
}

int gs_klink_dump(struct gs_klink *link, struct gs_kstate *ret, struct gs_err *err)
{
	for (int tries = 0; tries < DUMP_TRIES; tries++) {
		cleanup_kstate struct gs_kstate state = { 0 };
		struct gs_kreq req;
		int r = gs_klink_status(link, &state.status, err);

		if (r < 0)
			return r;
		start(&req, GS_CMD_DUMP);
		r = ask(link, &req, true, take_state, &state, err);
		if (r < 0)
			return r;
		if (link->nl.interrupted)
			continue;
		*ret = state;
		state = (struct gs_kstate){ 0 };
		return 0;
	}
	return gs_err_set(err, EAGAIN,
			  "the module's state changed while it was read, each of %d times",
			  DUMP_TRIES);
}
