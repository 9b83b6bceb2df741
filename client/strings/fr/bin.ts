/** Contains the French strings for the Bin page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { bin as english } from '../en/bin.ts'

export const bin: AreaTranslation<typeof english> = {
  title: 'Corbeille',
  about:
    'Les agents supprimés restent ici 30 jours. Leurs clés ne fonctionnent pas tant que vous ne les restaurez pas.',
  restore: 'Restaurer',
  deleteForeverMenu: 'Supprimer définitivement…',
  deleteForever: 'Supprimer définitivement',
  empty: 'La corbeille est vide',
  emptyHelp: 'Les agents que vous supprimez apparaissent ici pendant 30 jours.',
  lossOne:
    '{name}, ses versions et ses conversations enregistrées seront supprimés. Cette action est irréversible.',
  lossMany:
    'Les agents sélectionnés, leurs versions et leurs conversations enregistrées seront supprimés. Cette action est irréversible.',
  deleted: 'Suppression',
  deletedForever: 'Suppression définitive',
  created: 'Création',
  movedOne: 'Agent placé dans la corbeille',
  movedMany: 'Agents placés dans la corbeille',
  restoredOne: 'Agent restauré',
  restoredMany: 'Agents restaurés',
  deletedOne: 'Agent supprimé définitivement',
  deletedMany: 'Agents supprimés définitivement',
  aboutUploads:
    'Les envois supprimés restent ici 30 jours. Ils comptent dans le quota de stockage jusqu’à leur suppression définitive.',
  emptyHelpUploads: 'Les envois que vous supprimez apparaissent ici pendant 30 jours.',
  lossUpload: '{name} sera supprimé. Cette action est irréversible.',
  lossUploads: 'Les envois sélectionnés seront supprimés. Cette action est irréversible.',
  movedUpload: 'Envoi placé dans la corbeille',
  restoredUpload: 'Envoi restauré',
  restoredUploads: 'Envois restaurés',
  deletedUpload: 'Envoi supprimé définitivement',
  deletedUploads: 'Envois supprimés définitivement',
  movedUploads: 'Envois placés dans la corbeille',
}
