/** Contains the Chinese strings for the Files page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { files as english } from '../en/files.ts'

export const files: AreaTranslation<typeof english> = {
  title: '文件',
  about: '使用您的当前密钥通过文件 API 存储的文件。',
  searchBy: '按名称或 ID 搜索',
  deletedOne: '文件已删除',
  deletedMany: '文件已删除',
  deleteMenu: '删除…',
  deleteOne: '删除文件',
  deleteMany: '删除文件',
  deleteManyLoss: '所选的 {number} 个文件将被永久删除。',
  deleteOneLoss: '{name} 将被永久删除。',
  none: '还没有文件',
  noneHelp: '使用 POST /v1/files 或任何 OpenAI 官方客户端上传文件。',
  purpose: '用途',
  allPurposes: '所有用途',
  name: '名称',
  size: '大小',
  created: '创建时间',
  expires: '过期时间',
  download: '下载',
}
