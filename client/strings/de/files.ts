/** Contains the German strings for the Files page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { files as english } from '../en/files.ts'

export const files: AreaTranslation<typeof english> = {
  title: 'Dateien',
  about: 'Dateien, die mit Ihrem aktiven Schlüssel über die Datei-API gespeichert wurden.',
  searchBy: 'Nach Name oder ID suchen',
  deletedOne: 'Datei gelöscht',
  deletedMany: 'Dateien gelöscht',
  deleteMenu: 'Löschen …',
  deleteOne: 'Datei löschen',
  deleteMany: 'Dateien löschen',
  deleteManyLoss: 'Die {number} ausgewählten Dateien werden endgültig gelöscht.',
  deleteOneLoss: '{name} wird endgültig gelöscht.',
  none: 'Noch keine Dateien',
  noneHelp: 'Laden Sie Dateien mit POST /v1/files oder mit einem offiziellen OpenAI-Client hoch.',
  purpose: 'Zweck',
  allPurposes: 'Alle Zwecke',
  name: 'Name',
  size: 'Größe',
  created: 'Erstellt',
  expires: 'Läuft ab',
  download: 'Herunterladen',
}
