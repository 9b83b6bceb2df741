/** Contains the Spanish strings for an agent's Models page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { policy as english } from '../en/policy.ts'

export const policy: AreaTranslation<typeof english> = {
  title: 'Política de modelos',
  defaultModel: 'Modelo predeterminado',
  defaultModelHelp:
    'Se usa si una solicitud no indica ningún modelo. Si está vacío, se usa el modelo de la definición y, después, el predeterminado del servidor.',
  defaultModelNone: 'Ninguno (usar el modelo de la definición)',
  clearDefault: 'Quitar el modelo predeterminado',
  allowedModels: 'Modelos permitidos',
  allowedHelp: 'Déjelo vacío para permitir todos los modelos.',
  answerLimit: 'Límite de respuesta',
  dailyBudget: 'Presupuesto diario',
  monthlyBudget: 'Presupuesto mensual',
  inTokens: 'En tokens',
  used: '{number} usados',
  moveUp: 'Subir {name}',
  moveDown: 'Bajar {name}',
  remove: 'Quitar {name}',
  fallbackModels: 'Modelos de respaldo',
  fallbackHelp: 'Se prueban en este orden si un modelo falla antes de empezar a responder.',
  allAdded: 'Todos los modelos añadidos',
  addModel: 'Añadir modelo',
  degrade: 'Modelos más baratos',
  degradeHelp:
    'Estos modelos responden a las nuevas solicitudes cuando se ha usado el porcentaje indicado de cualquier presupuesto aplicable.',
  degradeAt: 'Porcentaje de un presupuesto para {name}',
  degradeFull: 'Como máximo 3 modelos',
  saved: 'Política de modelos guardada',
  allOf: 'Todos los modelos de {provider}',
  unavailable: '{name} (no disponible)',
  effective: 'En vigor ahora',
  noneAvailable: 'No hay ningún modelo disponible. Permita un modelo que ofrezca un proveedor.',
  default: 'predeterminado',
  fallback: 'respaldo',
  becausePolicy:
    'Se usa si una solicitud no indica ningún modelo: la política lo define como predeterminado.',
  becauseYaml:
    'Se usa si una solicitud no indica ningún modelo: la definición lo indica y la política lo permite.',
  becauseNone:
    'Se usa si una solicitud no indica ningún modelo: ni la política ni la definición indican uno que el agente pueda usar, así que es el predeterminado del servidor o el primero permitido.',
  fallbackTried: 'Se prueba si los modelos anteriores fallan antes de empezar a responder.',
  otherAny: 'Las solicitudes también pueden usar cualquier otro modelo:',
  otherAllowed: 'Las solicitudes también pueden usar estos modelos permitidos:',
}
