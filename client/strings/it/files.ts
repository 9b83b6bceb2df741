/** Contains the Italian strings for the Files page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { files as english } from '../en/files.ts'

export const files: AreaTranslation<typeof english> = {
  title: 'File',
  about: 'File salvati tramite l’API dei file con la sua chiave attiva.',
  searchBy: 'Cerca per nome o ID',
  deletedOne: 'File eliminato',
  deletedMany: 'File eliminati',
  deleteMenu: 'Elimina…',
  deleteOne: 'Elimina file',
  deleteMany: 'Elimina file selezionati',
  deleteManyLoss: 'I {number} file selezionati saranno eliminati definitivamente.',
  deleteOneLoss: '{name} sarà eliminato definitivamente.',
  none: 'Ancora nessun file',
  noneHelp: 'Carichi i file con POST /v1/files o con un client ufficiale di OpenAI.',
  purpose: 'Scopo',
  allPurposes: 'Tutti gli scopi',
  name: 'Nome',
  size: 'Dimensione',
  created: 'Creato',
  expires: 'Scade',
  download: 'Scarica',
}
