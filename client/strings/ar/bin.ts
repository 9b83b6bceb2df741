/** Contains the Arabic strings for the Bin page. */
import type { AreaTranslation } from '../catalogue.ts'
import type { bin as english } from '../en/bin.ts'

export const bin: AreaTranslation<typeof english> = {
  title: 'سلة المحذوفات',
  about: 'يبقى الوكلاء المحذوفون هنا 30 يومًا. لا تعمل مفاتيحهم حتى تستعيدهم.',
  restore: 'استعادة',
  deleteForeverMenu: 'حذف نهائي…',
  deleteForever: 'حذف نهائي',
  empty: 'سلة المحذوفات فارغة',
  emptyHelp: 'يظهر الوكلاء الذين تحذفهم هنا لمدة 30 يومًا.',
  lossOne: 'سيُحذف {name} وإصداراته ومحادثاته المخزّنة. لا يمكن التراجع عن ذلك.',
  lossMany: 'ستُحذف الوكلاء المحددة وإصداراتها ومحادثاتها المخزّنة. لا يمكن التراجع عن ذلك.',
  deleted: 'تاريخ الحذف',
  deletedForever: 'الحذف النهائي',
  created: 'تاريخ الإنشاء',
  movedOne: 'نُقل الوكيل إلى سلة المحذوفات',
  movedMany: 'نُقل الوكلاء إلى سلة المحذوفات',
  restoredOne: 'استُعيد الوكيل',
  restoredMany: 'استُعيد الوكلاء',
  deletedOne: 'حُذف الوكيل نهائيًا',
  deletedMany: 'حُذف الوكلاء نهائيًا',
  aboutUploads: 'تبقى عمليات الرفع المحذوفة هنا 30 يومًا، وتُحتسب من حصة التخزين حتى تُحذف نهائيًا.',
  emptyHelpUploads: 'تظهر عمليات الرفع التي تحذفها هنا لمدة 30 يومًا.',
  lossUpload: 'سيُحذف {name}. لا يمكن التراجع عن ذلك.',
  lossUploads: 'ستُحذف عمليات الرفع المحددة. لا يمكن التراجع عن ذلك.',
  movedUpload: 'نُقل العنصر إلى سلة المحذوفات',
  restoredUpload: 'استُعيد العنصر',
  restoredUploads: 'استُعيدت العناصر',
  deletedUpload: 'حُذف العنصر نهائيًا',
  deletedUploads: 'حُذفت العناصر نهائيًا',
  movedUploads: 'نُقلت العناصر إلى سلة المحذوفات',
}
