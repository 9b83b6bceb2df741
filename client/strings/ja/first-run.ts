/** Contains the Japanese strings for the "Get started" checklist. */
import type { AreaTranslation } from '../catalogue.ts'
import type { firstRun as english } from '../en/first-run.ts'

export const firstRun: AreaTranslation<typeof english> = {
  title: 'はじめに',
  about: '新規インストールからウェブサイトのチャットまでの 4 つの手順。',
  allSet: '準備が整いました',
  progress: '{steps} 手順中 {done} 手順が完了',
  hide: 'チェックリストを隠す',
  completeSteps: '完了した手順',
  complete: '（完了）',
  connect: 'モデルを接続',
  connectModel: 'モデルを接続',
  create: 'エージェントを作成',
  createAbout: 'テンプレートから始めます。名前、指示、必要に応じてツールを設定します。',
  createAgent: 'エージェントを作成',
  try: '試す',
  tryAbout: 'エージェントにメッセージを送り、回答、ツール呼び出し、トークンを確認します。',
  tryAgent: 'エージェントを試す',
  tryShort: '試す',
  tryTheAgent: 'エージェントを試す',
  embed: '埋め込む',
  embedAbout: 'エージェントの埋め込みコードをウェブサイトのページにコピーします。',
  showEmbedCode: '埋め込みコードを表示',
  embedShort: '埋め込む',
  embedTheAgent: 'エージェントを埋め込む',
  askAdministrator:
    '現在は、メッセージを繰り返すだけの内蔵モックモデルのみが応答します。モデルの接続を管理者に依頼してください。',
  connectHelp:
    '現在は、メッセージを繰り返すだけの内蔵モックモデルのみが応答します。OpenAI、Anthropic、Ollama、または OpenAI API に対応した任意のサーバーを追加してください。',
  mockModel: 'モックモデル',
  mockNotice: '回答は、メッセージを繰り返すだけの内蔵モックモデルによるものです。{link}',
  askShort: 'モデルの接続を管理者に依頼してください。',
}
