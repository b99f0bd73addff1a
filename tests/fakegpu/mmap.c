// SPDX-License-Identifier: GPL-2.0-only
/* Mappings of a card: pages that a fault function brings back whenever they were taken away. */
#include <linux/mm.h>

#include "compat.h"
#include "fg.h"

static struct fg_file *fg_file_of(const struct vm_area_struct *vma)
{
	return vma->vm_file->private_data;
}

static void fg_vma_count(const struct vm_area_struct *vma, int change)
{
	struct fg_node *node = fg_file_of(vma)->node;

	spin_lock(&fg_lock);
	node->mappings_now += change;
	spin_unlock(&fg_lock);
}

static void fg_vma_open(struct vm_area_struct *vma)
{
	fg_vma_count(vma, 1);
}

static void fg_vma_close(struct vm_area_struct *vma)
{
	fg_vma_count(vma, -1);
}

/* One record; its argument is the offset in the card's pages. */
static void fg_vma_log(const struct vm_area_struct *vma, enum fg_record_kind kind, u64 offset,
		       bool write, int ret)
{
	struct fg_file *fg = fg_file_of(vma);

	spin_lock(&fg_lock);
	fg_card_sample(fg->node->card);
	fg_log_locked(fg->node, kind, write, fg->id, fg->node->card, offset, ret);
	spin_unlock(&fg_lock);
}

static noinline vm_fault_t fg_card_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct fg_card *card = fg_file_of(vma)->node->card;
	bool write = vmf->flags & FAULT_FLAG_WRITE;

	/* As NVIDIA's driver: what was taken from the control node never comes back. */
	if (fg_file_of(vma)->node->kind == FG_NODE_CTL || vmf->pgoff >= FG_PAGES) {
		fg_vma_log(vma, FG_FAULT, (u64)vmf->pgoff << PAGE_SHIFT, write, -EFAULT);
		return VM_FAULT_SIGBUS;
	}
	fg_vma_log(vma, FG_FAULT, (u64)vmf->pgoff << PAGE_SHIFT, write, 0);
	/* With the mmap lock held. A card that wakes up first takes its time. */
	fg_sleep(READ_ONCE(fg_fault_ms), TASK_KILLABLE);
	return vmf_insert_pfn(vma, vmf->address, page_to_pfn(card->pages) + vmf->pgoff);
}

/* For ptrace and /proc/PID/mem, which can't see through a mapping of device memory. */
static noinline int fg_card_access(struct vm_area_struct *vma, unsigned long addr, void *buf,
				   int len, int write)
{
	struct fg_card *card = fg_file_of(vma)->node->card;
	u64 offset = addr - vma->vm_start + ((u64)vma->vm_pgoff << PAGE_SHIFT);
	u8 *at = (u8 *)card->doorbell + offset;

	/* The caller asks for as much as it wants, not for as much as is mapped. */
	len = min_t(u64, len, vma->vm_end - addr);
	if (offset + len > FG_PAGES * PAGE_SIZE)
		return -EINVAL;
	fg_vma_log(vma, FG_ACCESS, offset, write, 0);
	if (write)
		memcpy(at, buf, len);
	else
		memcpy(buf, at, len);
	return len;
}

static const struct vm_operations_struct fg_fault_vm_ops = {
	.open = fg_vma_open,
	.close = fg_vma_close,
	.fault = fg_card_fault,
	.access = fg_card_access,
};

static const struct vm_operations_struct fg_nofault_vm_ops = {
	.open = fg_vma_open,
	.close = fg_vma_close,
	.access = fg_card_access,
};

int fg_map(struct file *file, struct vm_area_struct *vma)
{
	struct fg_file *fg = file->private_data;
	bool nofault = READ_ONCE(fg_nofault);
	bool private = (vma->vm_flags & (VM_SHARED | VM_MAYWRITE)) == VM_MAYWRITE;
	unsigned long length = vma->vm_end - vma->vm_start;
	int err = 0;

	/* A private mapping would have to make copies of pages that no struct page is known of. */
	if (private && !READ_ONCE(fg_private))
		err = -EINVAL;
	else if (vma->vm_pgoff >= FG_PAGES || length >> PAGE_SHIFT > FG_PAGES - vma->vm_pgoff)
		err = -ENXIO;

	if (!err) {
		vma->vm_ops = nofault ? &fg_nofault_vm_ops : &fg_fault_vm_ops;
		if (nofault || fg->node->kind == FG_NODE_CTL || private || READ_ONCE(fg_populate))
			err = remap_pfn_range(vma, vma->vm_start,
					      page_to_pfn(fg->node->card->pages) + vma->vm_pgoff,
					      length, vma->vm_page_prot);
		else
			vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	}

	spin_lock(&fg_lock);
	if (!err)
		fg->node->mappings_now++;
	fg_log_locked(fg->node, FG_MMAP, 0, fg->id, fg->node->card, length, err);
	spin_unlock(&fg_lock);
	return err;
}

u32 fg_revoke(struct fg_card *card)
{
	struct fg_file *fg;
	u32 files = 0;

	mutex_lock(&fg_files_mutex);
	list_for_each_entry(fg, &fg_files, list) {
		if (fg->node->card != card)
			continue;
		unmap_mapping_range(fg->file->f_mapping, 0, 0, 1);
		files++;
	}
	mutex_unlock(&fg_files_mutex);
	return files;
}
