/** Contains the Chinese names of what the console loads and lists. */
import type { AreaTranslation } from '../catalogue.ts'
import type { things as english } from '../en/things.ts'

export const things: AreaTranslation<typeof english> = {
  agent: '智能体',
  agents: '智能体',
  agentKey: '智能体密钥',
  agentKeys: '智能体密钥',
  artifact: '制品',
  binned: '回收站中的智能体',
  charts: '图表',
  console: '控制台',
  conversation: '对话',
  conversations: '对话',
  entries: '条目',
  example: '示例',
  files: '文件',
  keys: '密钥',
  messages: '消息',
  models: '模型列表',
  page: '页面',
  pages: '页面',
  parentKeys: '主密钥',
  policy: '模型策略',
  steps: '步骤',
  uploads: '上传',
  usage: '用量',
  users: '用户',
  versions: '版本',
  providers: '提供商',
  testResult: '测试结果',
  calls: '调用',
}
