/** Contains the frame's texts in German. */
import type { Strings } from './en.ts'

export const de: Strings = {
  newMessages: { one: '{count} neue Nachricht', other: '{count} neue Nachrichten' },

  defaultTitle: 'Chat',
  placeholder: 'Nachricht eingeben …',
  send: 'Senden',
  stop: 'Anhalten',
  messageLabel: 'Ihre Nachricht',
  conversation: 'Unterhaltung',
  youSaid: 'Sie',
  assistantSaid: 'Antwort des Assistenten',
  thinking: 'Eine Antwort wird geschrieben …',
  answerReady: 'Die Antwort ist vollständig.',
  stopped: 'Sie haben diese Antwort angehalten.',
  scrollDown: 'Neue Nachrichten',
  startersLabel: 'Vorschläge',

  openChat: 'Chat öffnen',
  closeChat: 'Chat schließen',
  menu: 'Weitere Aktionen',
  newConversation: 'Neue Unterhaltung',
  shareConversation: 'Unterhaltung teilen',
  newConversationQuestion: 'Neue Unterhaltung beginnen?',
  newConversationLoss: 'Die Nachrichten der jetzigen werden von diesem Gerät gelöscht.',
  startNew: 'Neu beginnen',
  cancel: 'Abbrechen',

  copy: 'Kopieren',
  copied: 'Kopiert',
  copyCode: 'Code kopieren',
  copyMessage: 'Antwort kopieren',
  insert: 'In die Seite einfügen',
  share: 'Teilen',
  shared: 'Geteilt',
  retry: 'Erneut versuchen',
  regenerate: 'Neu beantworten',
  picture: 'Bild',
  code: 'Code',
  table: 'Tabelle',

  tooLongInput: 'Die Nachricht ist zu lang: {count} von höchstens {limit} Zeichen.',
  charactersUsed: '{count} von {limit} Zeichen',

  tool: {
    quoted: '„{name}“',
    running: '{name} wird verwendet …',
    done: '{name} verwendet',
    failed: '{name} ist fehlgeschlagen',
    denied: '{name} wurde nicht erlaubt',
    asking: '{name} braucht Ihre Erlaubnis',
    arguments: 'Übergeben',
    result: 'Ergebnis',
    question: 'Der Assistent möchte {name} auf dieser Seite mit genau diesen Angaben verwenden:',
    approve: 'Erlauben',
    deny: 'Nicht erlauben',
  },

  failures: {
    missing_api_key: 'Dieser Chat ist noch nicht eingerichtet: Die Seite nennt keinen Agentenschlüssel.',
    invalid_api_key: 'Dieser Chat kann nicht verwendet werden: Sein Schlüssel wurde abgelehnt.',
    agent_mismatch: 'Dieser Chat ist falsch eingerichtet: Sein Schlüssel gehört zu einem anderen Agenten.',
    endpoint_not_allowed: 'Dieser Chat darf den Server, den die Seite nennt, nicht ansprechen.',
    provider_key_not_allowed:
      'Dieser Server erlaubt keinen Anbieterschlüssel in einer Seite. Der Chat bleibt aus, damit der Schlüssel nicht verwendet wird.',
    context_too_large:
      'Die Seite fügt mehr Angaben hinzu, als gesendet werden können. Ihre Nachricht wurde nicht gesendet.',
    rate_limited: 'Gerade sind es zu viele Nachrichten. Bitte warten Sie einen Moment.',
    rate_limited_wait: 'Gerade sind es zu viele Nachrichten. Neuer Versuch möglich in: {wait}.',
    quota_spent:
      'Das Kontingent dieses Chats ist vorerst aufgebraucht. Bitte versuchen Sie es später erneut.',
    offline: 'Sie sind offline. Sobald die Verbindung wieder steht, geht es weiter.',
    unreachable: 'Der Server ist nicht erreichbar. Bitte prüfen Sie Ihre Verbindung.',
    too_long:
      'Diese Unterhaltung ist zu lang für den Assistenten. Beginnen Sie eine neue oder senden Sie eine kürzere Nachricht.',
    refused: 'Diese Nachricht konnte nicht verarbeitet werden. Ändern Sie sie und senden Sie sie erneut.',
    busy: 'Der Assistent ist gerade nicht verfügbar. Bitte versuchen Sie es gleich noch einmal.',
    interrupted: 'Die Verbindung ist mitten in der Antwort abgebrochen.',
    reloaded: 'Die Antwort brach ab, als die Seite neu geladen wurde.',
    empty: 'Es kam keine Antwort.',
    server: 'Auf dem Server ist etwas schiefgegangen.',
  },
  offlineNotice: 'Sie sind offline.',
}
