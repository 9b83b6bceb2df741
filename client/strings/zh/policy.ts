/** Contains the Chinese strings for an agent's Models page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { policy as english } from '../en/policy.ts'

export const policy: AreaTranslation<typeof english> = {
  title: '模型策略',
  defaultModel: '默认模型',
  defaultModelHelp: '当请求未指定模型时使用。留空时使用定义中的模型，其次使用服务器的默认模型。',
  defaultModelNone: '无（使用定义中的模型）',
  clearDefault: '清除默认模型',
  allowedModels: '允许的模型',
  allowedHelp: '留空表示允许所有模型。',
  answerLimit: '回答上限',
  dailyBudget: '每日预算',
  monthlyBudget: '每月预算',
  inTokens: '以 token 计',
  used: '已用 {number}',
  moveUp: '上移 {name}',
  moveDown: '下移 {name}',
  remove: '移除 {name}',
  fallbackModels: '备用模型',
  fallbackHelp: '如果模型在开始回答前失败，将按此顺序尝试。',
  allAdded: '已添加所有模型',
  addModel: '添加模型',
  saved: '模型策略已保存',
  allOf: '{provider} 的所有模型',
  unavailable: '{name}（不可用）',
  effective: '当前生效',
  noneAvailable: '没有可用的模型。请允许提供商列出的某个模型。',
  default: '默认',
  fallback: '备用',
  becausePolicy: '当请求未指定模型时使用：策略将其设为默认。',
  becauseYaml: '当请求未指定模型时使用：定义指定了它，且策略允许。',
  becauseNone:
    '当请求未指定模型时使用：策略和定义均未指定智能体可用的模型，因此使用服务器的默认模型或第一个允许的模型。',
  fallbackTried: '如果上述模型在开始回答前失败，则尝试此模型。',
  otherAny: '请求也可以使用任何其他模型：',
  otherAllowed: '请求也可以使用以下允许的模型：',
}
