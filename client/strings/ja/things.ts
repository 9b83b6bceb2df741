/** Contains the Japanese names of what the console loads and lists. */
import type { AreaTranslation } from '../catalogue.ts'
import type { things as english } from '../en/things.ts'

export const things: AreaTranslation<typeof english> = {
  agent: 'エージェント',
  agents: 'エージェント',
  agentKey: 'エージェントのキー',
  agentKeys: 'エージェントキー',
  artifact: 'アーティファクト',
  binned: 'ごみ箱のエージェント',
  charts: 'グラフ',
  console: 'コンソール',
  conversation: '会話',
  conversations: '会話',
  entries: '項目',
  example: '例',
  files: 'ファイル',
  keys: 'キー',
  messages: 'メッセージ',
  models: 'モデルの一覧',
  page: 'ページ',
  pages: 'ページ',
  parentKeys: '親キー',
  policy: 'モデルポリシー',
  steps: '手順',
  uploads: 'アップロード',
  usage: '使用量',
  users: 'ユーザー',
  versions: 'バージョン',
  providers: 'プロバイダー',
  testResult: 'テスト結果',
  calls: '呼び出し',
}
