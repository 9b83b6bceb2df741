/** Contains the Italian strings for the Bin page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { bin as english } from '../en/bin.ts'

export const bin: AreaTranslation<typeof english> = {
  title: 'Cestino',
  about:
    'Gli agenti eliminati restano qui per 30 giorni. Le loro chiavi non funzionano finché non li ripristina.',
  restore: 'Ripristina',
  deleteForeverMenu: 'Elimina per sempre…',
  deleteForever: 'Elimina per sempre',
  empty: 'Il cestino è vuoto',
  emptyHelp: 'Gli agenti che elimina compaiono qui per 30 giorni.',
  lossOne:
    '{name}, le sue versioni e le conversazioni conservate saranno eliminati. L’operazione non può essere annullata.',
  lossMany:
    'Gli agenti selezionati, le loro versioni e le conversazioni conservate saranno eliminati. L’operazione non può essere annullata.',
  deleted: 'Eliminato',
  deletedForever: 'Eliminazione definitiva',
  created: 'Creato',
  movedOne: 'Agente spostato nel cestino',
  movedMany: 'Agenti spostati nel cestino',
  restoredOne: 'Agente ripristinato',
  restoredMany: 'Agenti ripristinati',
  deletedOne: 'Agente eliminato per sempre',
  deletedMany: 'Agenti eliminati per sempre',
  aboutUploads:
    'I caricamenti eliminati restano qui per 30 giorni. Contano nella quota di archiviazione finché non sono eliminati per sempre.',
  emptyHelpUploads: 'I caricamenti che elimina compaiono qui per 30 giorni.',
  lossUpload: '{name} sarà eliminato. L’operazione non può essere annullata.',
  lossUploads: 'I caricamenti selezionati saranno eliminati. L’operazione non può essere annullata.',
  movedUpload: 'Caricamento spostato nel cestino',
  restoredUpload: 'Caricamento ripristinato',
  restoredUploads: 'Caricamenti ripristinati',
  deletedUpload: 'Caricamento eliminato per sempre',
  deletedUploads: 'Caricamenti eliminati per sempre',
  movedUploads: 'Caricamenti spostati nel cestino',
}
