/** Contains the Arabic strings for an agent's Models page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { policy as english } from '../en/policy.ts'

export const policy: AreaTranslation<typeof english> = {
  title: 'سياسة النماذج',
  defaultModel: 'النموذج الافتراضي',
  defaultModelHelp:
    'يُستخدم إذا لم يحدد الطلب نموذجًا. إذا كان فارغًا، يُستخدم نموذج التعريف ثم النموذج الافتراضي للخادم.',
  defaultModelNone: 'لا شيء (استخدام نموذج التعريف)',
  clearDefault: 'إزالة النموذج الافتراضي',
  allowedModels: 'النماذج المسموح بها',
  allowedHelp: 'اتركه فارغًا للسماح بكل النماذج.',
  answerLimit: 'حد الإجابة',
  dailyBudget: 'الميزانية اليومية',
  monthlyBudget: 'الميزانية الشهرية',
  inTokens: 'بالرموز',
  used: 'استُخدم {number}',
  moveUp: 'نقل {name} لأعلى',
  moveDown: 'نقل {name} لأسفل',
  remove: 'إزالة {name}',
  fallbackModels: 'النماذج الاحتياطية',
  fallbackHelp: 'تُجرَّب بهذا الترتيب إذا فشل نموذج قبل بدء إجابته.',
  allAdded: 'أُضيفت كل النماذج',
  addModel: 'إضافة نموذج',
  degrade: 'نماذج أرخص',
  degradeHelp: 'تجيب هذه النماذج عن الطلبات الجديدة عندما تُستهلك النسبة المحددة من أي ميزانية سارية.',
  degradeAt: 'النسبة المئوية من الميزانية لاستخدام {name}',
  degradeFull: '3 نماذج كحد أقصى',
  saved: 'حُفظت سياسة النماذج',
  allOf: 'كل نماذج {provider}',
  unavailable: '{name} (غير متاح)',
  effective: 'الساري الآن',
  noneAvailable: 'لا يتوفر أي نموذج. اسمح بنموذج يدرجه أحد المزوّدين.',
  default: 'افتراضي',
  fallback: 'احتياطي',
  becausePolicy: 'يُستخدم إذا لم يحدد الطلب نموذجًا: السياسة تجعله الافتراضي.',
  becauseYaml: 'يُستخدم إذا لم يحدد الطلب نموذجًا: التعريف يحدده والسياسة تسمح به.',
  becauseNone:
    'يُستخدم إذا لم يحدد الطلب نموذجًا: لا السياسة ولا التعريف يحدد نموذجًا يمكن للوكيل استخدامه، لذا هو الافتراضي للخادم أو أول نموذج مسموح به.',
  fallbackTried: 'يُجرَّب إذا فشلت النماذج أعلاه قبل بدء إجابتها.',
  otherAny: 'يمكن للطلبات أيضًا استخدام أي نموذج آخر:',
  otherAllowed: 'يمكن للطلبات أيضًا استخدام هذه النماذج المسموح بها:',
}
