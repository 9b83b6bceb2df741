/** Contains the French strings for the Files page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { files as english } from '../en/files.ts'

export const files: AreaTranslation<typeof english> = {
  title: 'Fichiers',
  about: 'Fichiers enregistrés par l’API de fichiers avec votre clé active.',
  searchBy: 'Rechercher par nom ou ID',
  deletedOne: 'Fichier supprimé',
  deletedMany: 'Fichiers supprimés',
  deleteMenu: 'Supprimer…',
  deleteOne: 'Supprimer le fichier',
  deleteMany: 'Supprimer les fichiers',
  deleteManyLoss: 'Les {number} fichiers sélectionnés seront supprimés définitivement.',
  deleteOneLoss: '{name} sera supprimé définitivement.',
  none: 'Aucun fichier pour l’instant',
  noneHelp: 'Envoyez des fichiers avec POST /v1/files ou avec un client officiel d’OpenAI.',
  purpose: 'Usage prévu',
  allPurposes: 'Tous les usages',
  name: 'Nom',
  size: 'Taille',
  created: 'Création',
  expires: 'Expiration',
  download: 'Télécharger',
}
