/** Contains the Portuguese strings for the Files page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { files as english } from '../en/files.ts'

export const files: AreaTranslation<typeof english> = {
  title: 'Arquivos',
  about: 'Arquivos armazenados pela API de arquivos com a sua chave ativa.',
  searchBy: 'Pesquisar por nome ou ID',
  deletedOne: 'Arquivo excluído',
  deletedMany: 'Arquivos excluídos',
  deleteMenu: 'Excluir…',
  deleteOne: 'Excluir arquivo',
  deleteMany: 'Excluir arquivos',
  deleteManyLoss: 'Os {number} arquivos selecionados serão excluídos permanentemente.',
  deleteOneLoss: '{name} será excluído permanentemente.',
  none: 'Ainda não há arquivos',
  noneHelp: 'Envie arquivos com POST /v1/files ou com qualquer cliente oficial da OpenAI.',
  purpose: 'Finalidade',
  allPurposes: 'Todas as finalidades',
  name: 'Nome',
  size: 'Tamanho',
  created: 'Criado',
  expires: 'Expira',
  download: 'Baixar',
}
