/** Contains the Spanish strings for the Bin page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { bin as english } from '../en/bin.ts'

export const bin: AreaTranslation<typeof english> = {
  title: 'Papelera',
  about: 'Los agentes eliminados permanecen aquí 30 días. Sus claves no funcionan hasta que los restaure.',
  restore: 'Restaurar',
  deleteForeverMenu: 'Eliminar definitivamente…',
  deleteForever: 'Eliminar definitivamente',
  empty: 'La papelera está vacía',
  emptyHelp: 'Los agentes que elimine aparecerán aquí durante 30 días.',
  lossOne:
    'Se eliminarán {name}, sus versiones y sus conversaciones guardadas. Esta acción no se puede deshacer.',
  lossMany:
    'Se eliminarán los agentes seleccionados, sus versiones y sus conversaciones guardadas. Esta acción no se puede deshacer.',
  deleted: 'Eliminado',
  deletedForever: 'Se elimina definitivamente',
  created: 'Creado',
  movedOne: 'Agente movido a la papelera',
  movedMany: 'Agentes movidos a la papelera',
  restoredOne: 'Agente restaurado',
  restoredMany: 'Agentes restaurados',
  deletedOne: 'Agente eliminado definitivamente',
  deletedMany: 'Agentes eliminados definitivamente',
  aboutUploads:
    'Las subidas eliminadas permanecen aquí 30 días. Cuentan para la cuota de almacenamiento hasta que se eliminan definitivamente.',
  emptyHelpUploads: 'Las subidas que elimine aparecerán aquí durante 30 días.',
  lossUpload: 'Se eliminará {name}. Esta acción no se puede deshacer.',
  lossUploads: 'Se eliminarán las subidas seleccionadas. Esta acción no se puede deshacer.',
  movedUpload: 'Subida movida a la papelera',
  restoredUpload: 'Subida restaurada',
  restoredUploads: 'Subidas restauradas',
  deletedUpload: 'Subida eliminada definitivamente',
  deletedUploads: 'Subidas eliminadas definitivamente',
  movedUploads: 'Subidas movidas a la papelera',
}
