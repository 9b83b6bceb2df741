/** Contains the French strings for the "Get started" checklist. */
import type { AreaTranslation } from '../catalogue.ts'
import type { firstRun as english } from '../en/first-run.ts'

export const firstRun: AreaTranslation<typeof english> = {
  title: 'Premiers pas',
  about: 'Quatre étapes d’une nouvelle installation à un chat sur votre site web.',
  allSet: 'Tout est prêt',
  progress: '{done} étapes sur {steps} terminées',
  hide: 'Masquer la liste',
  completeSteps: 'Étapes terminées',
  complete: '(terminée)',
  connect: 'Connecter un modèle',
  connectModel: 'Connecter le modèle',
  create: 'Créer un agent',
  createAbout:
    'Partez d’un modèle de définition : un nom, des instructions et, si vous le souhaitez, des outils.',
  createAgent: 'Créer l’agent',
  try: 'L’essayer',
  tryAbout: 'Envoyez un message à votre agent et consultez sa réponse, ses appels d’outils et ses jetons.',
  tryAgent: 'Essayer l’agent',
  tryShort: 'Essayer',
  tryTheAgent: 'Essayer cet agent',
  embed: 'L’intégrer',
  embedAbout: 'Copiez le code d’intégration de votre agent dans une page de votre site web.',
  showEmbedCode: 'Afficher le code d’intégration',
  embedShort: 'Intégrer',
  embedTheAgent: 'Intégrer l’agent',
  askAdministrator:
    'Seul le modèle fictif intégré répond, et il ne fait que répéter les messages. Demandez à votre administrateur de connecter un modèle.',
  connectHelp:
    'Seul le modèle fictif intégré répond, et il ne fait que répéter les messages. Ajoutez OpenAI, Anthropic, Ollama ou tout serveur avec l’API d’OpenAI.',
  mockModel: 'Modèle fictif',
  mockNotice:
    'Les réponses proviennent du modèle fictif intégré, qui ne fait que répéter les messages. {link}',
  askShort: 'Demandez à votre administrateur de connecter un modèle.',
}
