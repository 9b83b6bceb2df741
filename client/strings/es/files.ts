/** Contains the Spanish strings for the Files page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { files as english } from '../en/files.ts'

export const files: AreaTranslation<typeof english> = {
  title: 'Archivos',
  about: 'Archivos guardados mediante la API de archivos con su clave activa.',
  searchBy: 'Buscar por nombre o ID',
  deletedOne: 'Archivo eliminado',
  deletedMany: 'Archivos eliminados',
  deleteMenu: 'Eliminar…',
  deleteOne: 'Eliminar archivo',
  deleteMany: 'Eliminar archivos',
  deleteManyLoss: 'Los {number} archivos seleccionados se eliminarán de forma permanente.',
  deleteOneLoss: '{name} se eliminará de forma permanente.',
  none: 'Aún no hay archivos',
  noneHelp: 'Suba archivos con POST /v1/files o con cualquier cliente oficial de OpenAI.',
  purpose: 'Propósito',
  allPurposes: 'Todos los propósitos',
  name: 'Nombre',
  size: 'Tamaño',
  created: 'Creado',
  expires: 'Caduca',
  download: 'Descargar',
}
