/** Contains the Portuguese strings for the Bin page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { bin as english } from '../en/bin.ts'

export const bin: AreaTranslation<typeof english> = {
  title: 'Lixeira',
  about: 'Os agentes excluídos ficam aqui por 30 dias. As chaves deles não funcionam até você restaurá-los.',
  restore: 'Restaurar',
  deleteForeverMenu: 'Excluir para sempre…',
  deleteForever: 'Excluir para sempre',
  empty: 'A lixeira está vazia',
  emptyHelp: 'Os agentes que você excluir aparecem aqui por 30 dias.',
  lossOne: '{name}, suas versões e suas conversas armazenadas serão excluídos. Isso não pode ser desfeito.',
  lossMany:
    'Os agentes selecionados, suas versões e suas conversas armazenadas serão excluídos. Isso não pode ser desfeito.',
  deleted: 'Excluído',
  deletedForever: 'Exclusão definitiva',
  created: 'Criado',
  movedOne: 'Agente movido para a lixeira',
  movedMany: 'Agentes movidos para a lixeira',
  restoredOne: 'Agente restaurado',
  restoredMany: 'Agentes restaurados',
  deletedOne: 'Agente excluído para sempre',
  deletedMany: 'Agentes excluídos para sempre',
  aboutUploads:
    'Os envios excluídos ficam aqui por 30 dias. Eles contam para a cota de armazenamento até serem excluídos para sempre.',
  emptyHelpUploads: 'Os envios que você excluir aparecem aqui por 30 dias.',
  lossUpload: '{name} será excluído. Isso não pode ser desfeito.',
  lossUploads: 'Os envios selecionados serão excluídos. Isso não pode ser desfeito.',
  movedUpload: 'Envio movido para a lixeira',
  restoredUpload: 'Envio restaurado',
  restoredUploads: 'Envios restaurados',
  deletedUpload: 'Envio excluído para sempre',
  deletedUploads: 'Envios excluídos para sempre',
  movedUploads: 'Envios movidos para a lixeira',
}
