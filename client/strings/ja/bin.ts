/** Contains the Japanese strings for the Bin page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { bin as english } from '../en/bin.ts'

export const bin: AreaTranslation<typeof english> = {
  title: 'ごみ箱',
  about: '削除したエージェントは 30 日間ここに残ります。復元するまで、そのキーは使用できません。',
  restore: '復元',
  deleteForeverMenu: '完全に削除…',
  deleteForever: '完全に削除',
  empty: 'ごみ箱は空です',
  emptyHelp: '削除したエージェントは 30 日間ここに表示されます。',
  lossOne: '{name} と、そのバージョンおよび保存された会話が削除されます。この操作は元に戻せません。',
  lossMany:
    '選択したエージェントと、そのバージョンおよび保存された会話が削除されます。この操作は元に戻せません。',
  deleted: '削除日時',
  deletedForever: '完全削除日',
  created: '作成日時',
  movedOne: 'エージェントをごみ箱に移動しました',
  movedMany: 'エージェントをごみ箱に移動しました',
  restoredOne: 'エージェントを復元しました',
  restoredMany: 'エージェントを復元しました',
  deletedOne: 'エージェントを完全に削除しました',
  deletedMany: 'エージェントを完全に削除しました',
  aboutUploads:
    '削除したアップロードは 30 日間ここに残ります。完全に削除するまで、保存容量の上限に含まれます。',
  emptyHelpUploads: '削除したアップロードは 30 日間ここに表示されます。',
  lossUpload: '{name} が削除されます。この操作は元に戻せません。',
  lossUploads: '選択したアップロードが削除されます。この操作は元に戻せません。',
  movedUpload: 'アップロードをごみ箱に移動しました',
  restoredUpload: 'アップロードを復元しました',
  restoredUploads: 'アップロードを復元しました',
  deletedUpload: 'アップロードを完全に削除しました',
  deletedUploads: 'アップロードを完全に削除しました',
  movedUploads: 'アップロードをごみ箱に移動しました',
}
