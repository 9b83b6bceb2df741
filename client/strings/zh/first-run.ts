/** Contains the Chinese strings for the "Get started" checklist. */
import type { AreaTranslation } from '../catalogue.ts'
import type { firstRun as english } from '../en/first-run.ts'

export const firstRun: AreaTranslation<typeof english> = {
  title: '开始使用',
  about: '从全新安装到网站聊天只需四步。',
  allSet: '一切就绪',
  progress: '已完成 {done} 步，共 {steps} 步',
  hide: '隐藏清单',
  completeSteps: '已完成的步骤',
  complete: '（已完成）',
  connect: '连接模型',
  connectModel: '连接模型',
  create: '创建智能体',
  createAbout: '从模板开始：名称、指令，以及可选的工具。',
  createAgent: '创建智能体',
  try: '试用',
  tryAbout: '向您的智能体发送消息，查看其回答、工具调用和令牌数。',
  tryAgent: '试用智能体',
  tryShort: '试用',
  tryTheAgent: '试用此智能体',
  embed: '嵌入',
  embedAbout: '将智能体的嵌入代码复制到您网站的页面中。',
  showEmbedCode: '查看嵌入代码',
  embedShort: '嵌入',
  embedTheAgent: '嵌入此智能体',
  askAdministrator: '目前只有内置的模拟模型在回答，它只会重复消息。请联系管理员连接模型。',
  connectHelp:
    '目前只有内置的模拟模型在回答，它只会重复消息。请添加 OpenAI、Anthropic、Ollama 或任何支持 OpenAI API 的服务器。',
  mockModel: '模拟模型',
  mockNotice: '回答来自内置的模拟模型，它只会重复消息。{link}',
  askShort: '请联系管理员连接模型。',
}
