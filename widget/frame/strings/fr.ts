/** The frame's words in French. */
import type { Strings } from './strings.ts'

export const fr: Strings = {
  newMessages: { one: '{count} nouveau message', other: '{count} nouveaux messages' },

  defaultTitle: 'Discussion',
  placeholder: 'Écrivez un message…',
  send: 'Envoyer',
  stop: 'Arrêter',
  messageLabel: 'Votre message',
  conversation: 'Conversation',
  youSaid: 'Vous',
  assistantSaid: 'Réponse de l’assistant',
  thinking: 'Réponse en cours de rédaction…',
  answerReady: 'La réponse est complète.',
  stopped: 'Vous avez arrêté cette réponse.',
  scrollDown: 'Nouveaux messages',
  startersLabel: 'Suggestions',

  openChat: 'Ouvrir la discussion',
  closeChat: 'Fermer la discussion',
  menu: 'Autres actions',
  newConversation: 'Nouvelle conversation',
  shareConversation: 'Partager la conversation',
  newConversationQuestion: 'Commencer une nouvelle conversation ?',
  newConversationLoss: 'Les messages de celle-ci seront supprimés de cet appareil.',
  startNew: 'Recommencer',
  cancel: 'Annuler',

  copy: 'Copier',
  copied: 'Copié',
  copyCode: 'Copier le code',
  copyMessage: 'Copier la réponse',
  insert: 'Insérer dans la page',
  share: 'Partager',
  shared: 'Partagé',
  retry: 'Réessayer',
  regenerate: 'Répondre à nouveau',
  picture: 'Image',
  code: 'Code',
  table: 'Tableau',

  tooLongInput: 'Le message est trop long : {count} caractères sur {limit} au maximum.',
  charactersUsed: '{count} caractères sur {limit}',

  tool: {
    running: 'Utilisation de {name}…',
    done: '{name} utilisé',
    failed: 'Échec de {name}',
    denied: '{name} n’a pas été autorisé',
    asking: '{name} demande votre autorisation',
    arguments: 'Données transmises',
    result: 'Résultat',
    question: 'L’assistant souhaite utiliser « {name} » sur cette page avec exactement ces données :',
    approve: 'Autoriser',
    deny: 'Refuser',
  },

  failures: {
    missing_api_key: 'Cette discussion n’est pas encore configurée : la page ne donne pas de clé d’agent.',
    invalid_api_key: 'Cette discussion ne peut pas être utilisée : sa clé a été refusée.',
    agent_mismatch: 'Cette discussion est mal configurée : sa clé appartient à un autre agent.',
    endpoint_not_allowed: 'Cette discussion ne peut pas contacter le serveur indiqué par la page.',
    provider_key_not_allowed:
      'Ce serveur n’autorise pas de clé de fournisseur dans une page. La discussion reste désactivée afin que la clé ne soit pas utilisée.',
    context_too_large:
      'La page ajoute plus d’informations qu’il n’est possible d’en envoyer. Votre message n’a pas été envoyé.',
    rate_limited: 'Il y a trop de messages en ce moment. Veuillez patienter un instant.',
    rate_limited_wait: 'Il y a trop de messages en ce moment. Réessayez dans {wait}.',
    quota_spent: 'Le quota de cette discussion est épuisé pour l’instant. Veuillez réessayer plus tard.',
    offline: 'Vous êtes hors ligne. Vous pourrez continuer dès que la connexion sera rétablie.',
    unreachable: 'Le serveur est injoignable. Veuillez vérifier votre connexion.',
    too_long:
      'Cette conversation est trop longue pour l’assistant. Commencez-en une nouvelle ou envoyez un message plus court.',
    refused: 'Ce message n’a pas pu être traité.',
    busy: 'L’assistant n’est pas disponible en ce moment. Veuillez réessayer dans un instant.',
    interrupted: 'La connexion a été coupée au milieu de la réponse.',
    reloaded: 'La réponse s’est interrompue au rechargement de la page.',
    empty: 'Aucune réponse n’est arrivée.',
    server: 'Une erreur s’est produite sur le serveur.',
  },
  offlineNotice: 'Vous êtes hors ligne.',
}
