/** Contains the Japanese strings for the Files page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { files as english } from '../en/files.ts'

export const files: AreaTranslation<typeof english> = {
  title: 'ファイル',
  about: '有効なキーを使用してファイル API で保存されたファイル。',
  searchBy: '名前または ID で検索',
  deletedOne: 'ファイルを削除しました',
  deletedMany: 'ファイルを削除しました',
  deleteMenu: '削除…',
  deleteOne: 'ファイルを削除',
  deleteMany: 'ファイルを削除',
  deleteManyLoss: '選択した {number} 件のファイルは完全に削除されます。',
  deleteOneLoss: '{name} は完全に削除されます。',
  none: 'まだファイルがありません',
  noneHelp: 'POST /v1/files または OpenAI の公式クライアントでファイルをアップロードしてください。',
  purpose: '用途',
  allPurposes: 'すべての用途',
  name: '名前',
  size: 'サイズ',
  created: '作成日時',
  expires: '期限',
  download: 'ダウンロード',
}
