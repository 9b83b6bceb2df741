/** Contains the Chinese strings for the Bin page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { bin as english } from '../en/bin.ts'

export const bin: AreaTranslation<typeof english> = {
  title: '回收站',
  about: '已删除的智能体会在此保留 30 天。恢复之前，其密钥无法使用。',
  restore: '恢复',
  deleteForeverMenu: '永久删除…',
  deleteForever: '永久删除',
  empty: '回收站为空',
  emptyHelp: '您删除的智能体会在此显示 30 天。',
  lossOne: '{name} 及其版本和已存储的对话将被删除。此操作无法撤销。',
  lossMany: '所选智能体及其版本和已存储的对话将被删除。此操作无法撤销。',
  deleted: '删除时间',
  deletedForever: '永久删除时间',
  created: '创建时间',
  movedOne: '智能体已移至回收站',
  movedMany: '智能体已移至回收站',
  restoredOne: '智能体已恢复',
  restoredMany: '智能体已恢复',
  deletedOne: '智能体已永久删除',
  deletedMany: '智能体已永久删除',
  aboutUploads: '已删除的上传会在此保留 30 天。永久删除之前，它们会计入存储配额。',
  emptyHelpUploads: '您删除的上传会在此显示 30 天。',
  lossUpload: '{name} 将被删除。此操作无法撤销。',
  lossUploads: '所选上传将被删除。此操作无法撤销。',
  movedUpload: '上传已移至回收站',
  restoredUpload: '上传已恢复',
  restoredUploads: '上传已恢复',
  deletedUpload: '上传已永久删除',
  deletedUploads: '上传已永久删除',
  movedUploads: '上传已移至回收站',
}
