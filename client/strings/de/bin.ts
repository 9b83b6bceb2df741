/** Contains the German strings for the Bin page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { bin as english } from '../en/bin.ts'

export const bin: AreaTranslation<typeof english> = {
  title: 'Papierkorb',
  about:
    'Gelöschte Agenten bleiben 30 Tage hier. Ihre Schlüssel funktionieren erst wieder, wenn Sie sie wiederherstellen.',
  restore: 'Wiederherstellen',
  deleteForeverMenu: 'Endgültig löschen …',
  deleteForever: 'Endgültig löschen',
  empty: 'Der Papierkorb ist leer',
  emptyHelp: 'Agenten, die Sie löschen, erscheinen hier 30 Tage lang.',
  lossOne:
    '{name} sowie alle Versionen und gespeicherten Unterhaltungen werden gelöscht. Das kann nicht rückgängig gemacht werden.',
  lossMany:
    'Die ausgewählten Agenten sowie ihre Versionen und gespeicherten Unterhaltungen werden gelöscht. Das kann nicht rückgängig gemacht werden.',
  deleted: 'Gelöscht',
  deletedForever: 'Endgültig gelöscht',
  created: 'Erstellt',
  movedOne: 'Agent in den Papierkorb verschoben',
  movedMany: 'Agenten in den Papierkorb verschoben',
  restoredOne: 'Agent wiederhergestellt',
  restoredMany: 'Agenten wiederhergestellt',
  deletedOne: 'Agent endgültig gelöscht',
  deletedMany: 'Agenten endgültig gelöscht',
  aboutUploads:
    'Gelöschte Uploads bleiben 30 Tage hier. Sie zählen zum Speicherkontingent, bis sie endgültig gelöscht werden.',
  emptyHelpUploads: 'Uploads, die Sie löschen, erscheinen hier 30 Tage lang.',
  lossUpload: '{name} wird gelöscht. Das kann nicht rückgängig gemacht werden.',
  lossUploads: 'Die ausgewählten Uploads werden gelöscht. Das kann nicht rückgängig gemacht werden.',
  movedUpload: 'Upload in den Papierkorb verschoben',
  restoredUpload: 'Upload wiederhergestellt',
  restoredUploads: 'Uploads wiederhergestellt',
  deletedUpload: 'Upload endgültig gelöscht',
  deletedUploads: 'Uploads endgültig gelöscht',
  movedUploads: 'Uploads in den Papierkorb verschoben',
}
