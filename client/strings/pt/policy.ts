/** Contains the Portuguese strings for an agent's Models page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { policy as english } from '../en/policy.ts'

export const policy: AreaTranslation<typeof english> = {
  title: 'Política de modelos',
  defaultModel: 'Modelo padrão',
  defaultModelHelp:
    'Usado se uma solicitação não indicar um modelo. Se vazio, usa-se o modelo da definição e, depois, o padrão do servidor.',
  defaultModelNone: 'Nenhum (usar o modelo da definição)',
  clearDefault: 'Remover modelo padrão',
  allowedModels: 'Modelos permitidos',
  allowedHelp: 'Deixe vazio para permitir todos os modelos.',
  answerLimit: 'Limite de resposta',
  dailyBudget: 'Orçamento diário',
  monthlyBudget: 'Orçamento mensal',
  inTokens: 'Em tokens',
  used: '{number} usados',
  moveUp: 'Mover {name} para cima',
  moveDown: 'Mover {name} para baixo',
  remove: 'Remover {name}',
  fallbackModels: 'Modelos de reserva',
  fallbackHelp: 'Tentados nesta ordem se um modelo falhar antes de começar a responder.',
  allAdded: 'Todos os modelos adicionados',
  addModel: 'Adicionar modelo',
  degrade: 'Modelos mais baratos',
  degradeHelp:
    'Estes modelos respondem às novas solicitações quando a porcentagem indicada de um orçamento aplicável já foi usada.',
  degradeAt: 'Porcentagem de um orçamento para {name}',
  degradeFull: 'No máximo 3 modelos',
  saved: 'Política de modelos salva',
  allOf: 'Todos os modelos de {provider}',
  unavailable: '{name} (indisponível)',
  effective: 'Em vigor agora',
  noneAvailable: 'Nenhum modelo disponível. Permita um modelo que um provedor ofereça.',
  default: 'padrão',
  fallback: 'reserva',
  becausePolicy: 'Usado se uma solicitação não indicar um modelo: a política o define como padrão.',
  becauseYaml: 'Usado se uma solicitação não indicar um modelo: a definição o indica e a política o permite.',
  becauseNone:
    'Usado se uma solicitação não indicar um modelo: nem a política nem a definição indicam um que o agente possa usar, então é o padrão do servidor ou o primeiro permitido.',
  fallbackTried: 'Tentado se os modelos acima falharem antes de começar a responder.',
  otherAny: 'As solicitações também podem usar qualquer outro modelo:',
  otherAllowed: 'As solicitações também podem usar estes modelos permitidos:',
}
