// SPDX-License-Identifier: Apache-2.0
/* Building requests, and asking the controller for a family. */
#include <errno.h>
#include <linux/genetlink.h>
#include <string.h>

#include "common/knl.h"

void gs_kreq_start(struct gs_kreq *req, uint16_t family, uint8_t cmd, uint8_t version)
{
	struct genlmsghdr *genl;

	req->full = false;
	req->nlh = mnl_nlmsg_put_header(req->buf);
	req->nlh->nlmsg_type = family;
	genl = mnl_nlmsg_put_extra_header(req->nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = version;
}

void gs_kreq_data(struct gs_kreq *req, uint16_t type, const void *data, size_t len)
{
	if (!mnl_attr_put_check(req->nlh, sizeof(req->buf), type, len, data))
		req->full = true;
}

void gs_kreq_u8(struct gs_kreq *req, uint16_t type, uint8_t value)
{
	gs_kreq_data(req, type, &value, sizeof(value));
}

void gs_kreq_u32(struct gs_kreq *req, uint16_t type, uint32_t value)
{
	gs_kreq_data(req, type, &value, sizeof(value));
}

void gs_kreq_u64(struct gs_kreq *req, uint16_t type, uint64_t value)
{
	gs_kreq_data(req, type, &value, sizeof(value));
}

void gs_kreq_str(struct gs_kreq *req, uint16_t type, const char *value)
{
	gs_kreq_data(req, type, value, strlen(value) + 1);
}

void gs_kreq_flag(struct gs_kreq *req, uint16_t type)
{
	gs_kreq_data(req, type, NULL, 0);
}

struct nlattr *gs_kreq_nest(struct gs_kreq *req, uint16_t type)
{
	struct nlattr *nest = mnl_attr_nest_start_check(req->nlh, sizeof(req->buf), type);

	if (!nest)
		req->full = true;
	return nest;
}

void gs_kreq_nest_end(struct gs_kreq *req, struct nlattr *nest)
{
	if (nest)
		mnl_attr_nest_end(req->nlh, nest);
}

/* What is looked for in the controller's answer. */
struct lookup {
	const char *group;
	struct gs_kfamily found;
};

struct group {
	const char *name;
	uint32_t id;
};

static int take_group_attr(const struct nlattr *attr, void *data)
{
	struct group *group = data;
	unsigned int type = mnl_attr_get_type(attr);

	if (type == CTRL_ATTR_MCAST_GRP_NAME && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) == 0)
		group->name = mnl_attr_get_str(attr);
	if (type == CTRL_ATTR_MCAST_GRP_ID && mnl_attr_validate(attr, MNL_TYPE_U32) == 0)
		group->id = mnl_attr_get_u32(attr);
	return MNL_CB_OK;
}

static int take_group(const struct nlattr *attr, void *data)
{
	struct lookup *lookup = data;
	struct group group = { 0 };

	if (mnl_attr_parse_nested(attr, take_group_attr, &group) < 0)
		return MNL_CB_ERROR;
	if (group.name && strcmp(group.name, lookup->group) == 0)
		lookup->found.group = group.id;
	return MNL_CB_OK;
}

static int take_family_attr(const struct nlattr *attr, void *data)
{
	struct lookup *lookup = data;

	switch (mnl_attr_get_type(attr)) {
	case CTRL_ATTR_FAMILY_ID:
		if (mnl_attr_validate(attr, MNL_TYPE_U16) < 0)
			return MNL_CB_ERROR;
		lookup->found.id = mnl_attr_get_u16(attr);
		break;
	case CTRL_ATTR_VERSION:
		if (mnl_attr_validate(attr, MNL_TYPE_U32) < 0)
			return MNL_CB_ERROR;
		lookup->found.version = mnl_attr_get_u32(attr);
		break;
	case CTRL_ATTR_MCAST_GROUPS:
		if (mnl_attr_validate(attr, MNL_TYPE_NESTED) < 0)
			return MNL_CB_ERROR;
		return mnl_attr_parse_nested(attr, take_group, lookup);
	default:
		break;
	}
	return MNL_CB_OK;
}

static int take_family(const struct nlmsghdr *nlh, void *arg, struct gs_err *err)
{
	if (mnl_nlmsg_get_payload_len(nlh) < GENL_HDRLEN ||
	    mnl_attr_parse(nlh, GENL_HDRLEN, take_family_attr, arg) < 0)
		return gs_err_set(err, EPROTO, "the controller's message is malformed");
	return 0;
}

int gs_knl_family(struct gs_knl *nl, const char *name, const char *group, struct gs_kfamily *ret,
		  struct gs_err *err)
{
	struct lookup lookup = { .group = group };
	struct gs_kreq req;
	int r;

	gs_kreq_start(&req, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1);
	gs_kreq_str(&req, CTRL_ATTR_FAMILY_NAME, name);
	r = gs_knl_ask(nl, &req, false, take_family, &lookup, err);
	if (r < 0)
		return r;
	/* GENL_ID_CTRL is the smallest. */
	if (lookup.found.id < GENL_ID_CTRL)
		return gs_err_set(err, EPROTO, "the controller gave no number of family %s", name);
	*ret = lookup.found;
	return 0;
}

struct notice {
	const char *name;
	uint16_t id;
};

static int take_notice_attr(const struct nlattr *attr, void *data)
{
	struct notice *notice = data;
	unsigned int type = mnl_attr_get_type(attr);

	if (type == CTRL_ATTR_FAMILY_NAME && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) == 0)
		notice->name = mnl_attr_get_str(attr);
	if (type == CTRL_ATTR_FAMILY_ID && mnl_attr_validate(attr, MNL_TYPE_U16) == 0)
		notice->id = mnl_attr_get_u16(attr);
	return MNL_CB_OK;
}

int gs_knl_notice(const struct nlmsghdr *nlh, const char *name, uint16_t *ret_id)
{
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(nlh);
	struct notice notice = { 0 };

	if (nlh->nlmsg_type != GENL_ID_CTRL || mnl_nlmsg_get_payload_len(nlh) < GENL_HDRLEN ||
	    (genl->cmd != CTRL_CMD_NEWFAMILY && genl->cmd != CTRL_CMD_DELFAMILY))
		return 0;
	(void)mnl_attr_parse(nlh, GENL_HDRLEN, take_notice_attr, &notice);
	if (!notice.name || strcmp(notice.name, name) != 0)
		return 0;
	*ret_id = notice.id;
	return genl->cmd;
}
