/** Contains the French strings for an agent's Models page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { policy as english } from '../en/policy.ts'

export const policy: AreaTranslation<typeof english> = {
  title: 'Politique de modèles',
  defaultModel: 'Modèle par défaut',
  defaultModelHelp:
    'Utilisé si une requête n’indique pas de modèle. S’il est vide, le modèle de la définition s’applique, puis celui par défaut du serveur.',
  defaultModelNone: 'Aucun (utiliser le modèle de la définition)',
  clearDefault: 'Effacer le modèle par défaut',
  allowedModels: 'Modèles autorisés',
  allowedHelp: 'Laissez vide pour autoriser tous les modèles.',
  answerLimit: 'Limite de réponse',
  dailyBudget: 'Budget quotidien',
  monthlyBudget: 'Budget mensuel',
  inTokens: 'En tokens',
  used: '{number} utilisés',
  moveUp: 'Monter {name}',
  moveDown: 'Descendre {name}',
  remove: 'Retirer {name}',
  fallbackModels: 'Modèles de secours',
  fallbackHelp: 'Essayés dans cet ordre si un modèle échoue avant le début de sa réponse.',
  allAdded: 'Tous les modèles sont ajoutés',
  addModel: 'Ajouter un modèle',
  degrade: 'Modèles moins chers',
  degradeHelp:
    'Ces modèles répondent aux nouvelles requêtes dès que le pourcentage indiqué d’un budget applicable est utilisé.',
  degradeAt: 'Pourcentage d’un budget pour {name}',
  degradeFull: '3 modèles au maximum',
  saved: 'Politique de modèles enregistrée',
  allOf: 'Tous les modèles de {provider}',
  unavailable: '{name} (indisponible)',
  effective: 'En vigueur actuellement',
  noneAvailable: 'Aucun modèle n’est disponible. Autorisez un modèle qu’un fournisseur propose.',
  default: 'par défaut',
  fallback: 'secours',
  becausePolicy: 'Utilisé si une requête n’indique pas de modèle : la politique le définit par défaut.',
  becauseYaml:
    'Utilisé si une requête n’indique pas de modèle : la définition l’indique et la politique l’autorise.',
  becauseNone:
    'Utilisé si une requête n’indique pas de modèle : ni la politique ni la définition n’en indiquent que l’agent puisse utiliser, c’est donc celui par défaut du serveur ou le premier autorisé.',
  fallbackTried: 'Essayé si les modèles ci-dessus échouent avant le début de leur réponse.',
  otherAny: 'Les requêtes peuvent aussi utiliser tout autre modèle :',
  otherAllowed: 'Les requêtes peuvent aussi utiliser ces modèles autorisés :',
}
