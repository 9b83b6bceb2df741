/** Contains the Japanese strings for an agent's Models page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { policy as english } from '../en/policy.ts'

export const policy: AreaTranslation<typeof english> = {
  title: 'モデルポリシー',
  defaultModel: 'デフォルトモデル',
  defaultModelHelp:
    'リクエストでモデルが指定されていない場合に使われます。空の場合は定義のモデル、次にサーバーのデフォルトが使われます。',
  defaultModelNone: 'なし (定義のモデルを使用)',
  clearDefault: 'デフォルトモデルをクリア',
  allowedModels: '許可するモデル',
  allowedHelp: '空欄の場合、すべてのモデルが許可されます。',
  answerLimit: '応答の上限',
  dailyBudget: '1日の予算',
  monthlyBudget: '1か月の予算',
  inTokens: 'トークン単位',
  used: '{number} 使用済み',
  moveUp: '{name} を上へ移動',
  moveDown: '{name} を下へ移動',
  remove: '{name} を削除',
  fallbackModels: 'フォールバックモデル',
  fallbackHelp: '応答の開始前にモデルが失敗した場合、この順に試されます。',
  allAdded: 'すべてのモデルを追加済み',
  addModel: 'モデルを追加',
  degrade: '低価格のモデル',
  degradeHelp:
    '適用される予算のいずれかが指定の割合まで使われると、新しいリクエストにはこれらのモデルが応答します。',
  degradeAt: '{name} を使う予算の割合（%）',
  degradeFull: 'モデルは 3 つまで',
  saved: 'モデルポリシーを保存しました',
  allOf: '{provider} のすべてのモデル',
  unavailable: '{name} (利用不可)',
  effective: '現在の設定',
  noneAvailable: '利用できるモデルがありません。プロバイダーが提供するモデルを許可してください。',
  default: 'デフォルト',
  fallback: 'フォールバック',
  becausePolicy: 'リクエストでモデルが指定されていない場合に使用: ポリシーでデフォルトに設定されています。',
  becauseYaml: 'リクエストでモデルが指定されていない場合に使用: 定義で指定され、ポリシーで許可されています。',
  becauseNone:
    'リクエストでモデルが指定されていない場合に使用: ポリシーにも定義にも、エージェントが使えるモデルの指定がないため、サーバーのデフォルトまたは最初に許可されたモデルです。',
  fallbackTried: '上のモデルが応答の開始前に失敗した場合に試されます。',
  otherAny: 'リクエストは他のどのモデルも使用できます:',
  otherAllowed: 'リクエストは、次の許可されたモデルも使用できます:',
}
